import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArrayNode } from "../src/api.js";
import { ancillaryNames, errorNames, fitting, isStandardError } from "../src/companions.js";
import { elements, notedText } from "../src/elements.js";
import { lineStyleOf } from "../src/line_controls.js";
import { paintParts, paintPhases, unwrapped } from "../src/paint.js";
import { edgesAfter } from "../src/points.js";
import { csvOf } from "../src/save.js";
import { edgesOf, scalingOf } from "../src/scales.js";
import { choicesOf, windowOf } from "../src/scatter.js";
import { stateOf } from "../src/state.js";

const node = (shape: number[], attributes: Record<string, unknown> = {}, chunks = shape): ArrayNode =>
  ({ kind: "array", name: "air", path: "weather/air", shape, itemsize: 8, attributes, dimensions: shape.map(() => null), nchunks: shape.map((length, axis) => Math.ceil(length / (chunks[axis] ?? 1))), grid: { chunks, shards: null } }) as unknown as ArrayNode;

test("a scale and its inverse agree, and what has no logarithm has no place", () => {
  for (const kind of ["linear", "log", "symlog"]) {
    const scaling = scalingOf(kind, [2, 5000]);
    for (const value of [2, 7, 300, 5000]) assert.ok(Math.abs(scaling.value(scaling.share(value)) - value) < 1e-9 * value);
    assert.ok(scaling.ticks(5).every((one) => one >= 2 && one <= 5000));
  }
  assert.ok(Number.isNaN(scalingOf("log", [1, 10]).share(0)) && Number.isNaN(scalingOf("log", [1, 10]).share(-1)));
  assert.deepEqual(scalingOf("log", [1, 100000]).ticks(6), [1, 10, 100, 1000, 10000, 100000]);
  assert.deepEqual(scalingOf("log", [1, 50]).ticks(9), [1, 2, 5, 10, 20, 50]);
  assert.equal(scalingOf("symlog", [-1000, 1000]).share(0), 0.5);
  const about = scalingOf("symlog", [-1000, 1000]).ticks(8);
  assert.ok(about.includes(0) && about.includes(-100) && about.includes(100));
});

test("the edges of an axis are a little beyond the numbers that it can show", () => {
  const [low, high] = edgesOf([Float64Array.of(NaN, 0, 10)], "linear");
  assert.ok(low < 0 && low > -1 && high > 10 && high < 11);
  const [first, last] = edgesOf([Float64Array.of(-5, 1, 1000)], "log");
  assert.ok(first < 1 && first > 0.5 && last > 1000 && last < 2000);
  assert.deepEqual(edgesOf([Float64Array.of(-1)], "log"), [1, 10]);
  assert.deepEqual(edgesOf([Float64Array.of(4, 4)], "linear"), [3, 5]);
});

test("an axis is zoomed on its scale", () => {
  assert.deepEqual(edgesAfter([0, 10], "linear", { factor: 2 }), [2.5, 7.5]);
  assert.deepEqual(edgesAfter([0, 10], "linear", { factor: 2, at: 0 }), [0, 5]);
  assert.deepEqual(edgesAfter([0, 10], "linear", { by: 0.5 }), [5, 15]);
  const [low, high] = edgesAfter([1, 10000], "log", { factor: 2 });
  assert.ok(Math.abs(low - 10) < 1e-9 && Math.abs(high - 1000) < 1e-6);
});

test("errors are found by the attributes of CF, by names, and by the signal of NeXus", () => {
  assert.deepEqual(ancillaryNames(node([3], { ancillary_variables: "a_flag  a_error ../b" })), ["a_flag", "a_error"]);
  assert.deepEqual(ancillaryNames(node([3], { ancillary_variables: 3 })), []);
  const members = ["air_errors", "air_std", "errors", "air_flag"].map((name) => ({ name, kind: "array" as const, shape: [3] }));
  assert.deepEqual(errorNames(node([3]), undefined, members), ["air_errors", "air_std"]);
  assert.deepEqual(errorNames(node([3]), "air", members), ["air_errors", "air_std", "errors"]);
  assert.deepEqual(errorNames(node([4]), "air", members), []);
  assert.ok(isStandardError("x", { standard_name: "air_temperature standard_error" }));
  assert.ok(!isStandardError("x_error", { standard_name: "air_temperature status_flag" }));
  assert.ok(isStandardError("air_uncertainty", {}) && isStandardError("air_error", { standard_name: "air_temperature" }) && !isStandardError("terror", {}));
});

test("arrays of the same shape, and lines of the same length, fit", () => {
  const siblings = [{ path: "a", shape: [3, 4] }, { path: "b", shape: [4] }, { path: "c", shape: [3] }, { path: "d", shape: [4, 3] }];
  assert.deepEqual(fitting(node([3, 4]), 1, { errors: null, siblings }), ["a", "b"]);
  assert.deepEqual(fitting(node([3, 4]), 0, { errors: null, siblings }), ["a", "c"]);
});

test("points are drawn against coordinates, other arrays and other columns", () => {
  assert.deepEqual(choicesOf(node([100, 2]), 0, ["weather/b"], "weather/x"), {
    "": "index", "weather/x": "x", "weather/b": "b", "/1=0": "air, dim_1 0", "/1=1": "air, dim_1 1",
  });
  assert.deepEqual(Object.keys(choicesOf(node([100, 99]), 0, [], "weather/air")), [""]);
});

test("points are of whole chunks from the beginning of a span, however long it is", () => {
  assert.deepEqual(windowOf(node([1000], {}, [10]), 0, [0, 1000]), { span: [0, 1000], step: 1, isCut: false });
  assert.deepEqual(windowOf(node([1_000_000], {}, [1000]), 0, [0, 1_000_000]), { span: [0, 1_000_000], step: 5, isCut: false });
  assert.deepEqual(windowOf(node([1e12], {}, [2 ** 20]), 0, [0, 1e12]), { span: [0, 32 * 2 ** 20], step: 168, isCut: true });
});

test("the style of a line is that of its state, and limits that a logarithm lacks are left out", () => {
  assert.deepEqual(lineStyleOf({ ...stateOf(""), scaley: "log", least: -1, most: 5, errors: false }), { shape: "line", scale: "log", limits: null, hasErrors: false, hasGuides: true });
  assert.deepEqual(lineStyleOf({ ...stateOf(""), shape: "steps", least: 1, most: 5, scaley: "other" }).limits, [1, 5]);
});

test("phases are drawn without jumps", () => {
  const phases = Float64Array.from({ length: 50 }, (_, at) => Math.atan2(Math.sin(at / 2), Math.cos(at / 2)));
  unwrapped(phases).forEach((phase, at) => assert.ok(Math.abs(phase - at / 2) < 1e-9));
  assert.deepEqual([...unwrapped(Float64Array.of(3, NaN, -3))].map((one) => Math.round(one * 100) / 100), [3, NaN, 3.28]);
});

test("the magnitude darkens the hue of the phase", () => {
  const read = elements(Float64Array.of(2, 0, 0, 0, 1, 0).buffer, "<c16");
  const paint = paintPhases({ map: "gray", limits: [0, 2], norm: "linear" });
  const colors = [0, 1, 2].map((at) => {
    const out = new Uint8ClampedArray(4);
    paint(read, at, 0, out, 0);
    return [...out];
  });
  assert.deepEqual(colors, [[128, 128, 128, 255], [0, 0, 0, 255], [64, 64, 64, 255]]);
});

test("parts of colours are read from blue to red", () => {
  const read = elements(Uint8Array.of(1, 2, 3).buffer, "|u1");
  const out = new Uint8ClampedArray(4);
  paintParts(3, true)(read, 0, 1, out, 0);
  assert.deepEqual([...out], [3, 2, 1, 255]);
});

test("a table of numbers is CSV, with names quoted where that is needed", () => {
  assert.equal(csvOf([{ name: "a, b", cells: ['x"y', "z"] }, { name: "c", cells: [1.5, NaN] }]), '"a, b",c\n"x""y",1.5\nz,\n');
});

test("floats are written in a notation, and anything else exactly", () => {
  assert.deepEqual([notedText(1234.5, "<f8", "fixed"), notedText(1234.5, "<f8", "scientific"), notedText(0.1, "<f8", "exact")], ["1234.500000", "1.234500e+3", "0.1"]);
  assert.deepEqual([notedText(5n, "<i8", "fixed"), notedText(NaN, "<f8", "fixed")], ["5", "NaN"]);
});
