import assert from "node:assert/strict";
import { test } from "node:test";
import { encodePath } from "../src/api.js";
import { colorTable, histogramOf, limitsOf, shareOf, valueAt } from "../src/colors.js";
import { ranges } from "../src/line.js";
import { dumpState, parseState, type State } from "../src/state.js";
import { shownEntries } from "../src/tree.js";

test("a state survives the URL, with any name", () => {
  const state: State = { path: "a b+ü%#?:/x&y=z", indices: { 0: 3, 2: 0 }, x: 1, y: 3, view: "heatmap", map: "gray", low: -1.5, high: 2, box: [1.5, -2, 0.125], span: [3, 123456789012], grid: true, coast: false, limits: "full", norm: "log", part: "phase", at: [3, 4], along: 0, channels: [], windows: { 1: [0, 2.5] }, labels: "labels/a b", shape: "steps", scalex: "log", scaley: "symlog", least: -2, most: 1e9, errors: false, guides: true, also: ["a,b/c&d", "e"], against: "/1=0", tint: "w/x y", domain: [-1, 2.5, 0, 1e-5], flipx: true, flipy: false, fill: true, bgr: false, notation: "fixed", turn: [30, 90] };
  assert.deepEqual(parseState(dumpState(state)), state);
  assert.deepEqual(parseState(""), { path: "", indices: {}, windows: {} });
});

test("what is not understood in a URL is left out", () => {
  assert.deepEqual(parseState("#/a%ff?x=1.5&i0=b&low=&box=1,2&other=1&high=Infinity&at=1&span=4,3&w1=a,2"), { path: "a%ff", indices: {}, windows: {} });
});

test("names are encoded segment by segment", () => {
  assert.equal(encodePath("a b/%2F/#"), "a%20b/%252F/%23");
});

test("colours begin and end with the map, and NaN has none", () => {
  assert.deepEqual([...colorTable("gray").slice(0, 3), ...colorTable("gray").slice(-3)], [0, 0, 0, 255, 255, 255]);
  assert.deepEqual([...colorTable("viridis").slice(0, 3)], [68, 1, 84]);
  assert.deepEqual([NaN, -1, 5, 11].map((value) => shareOf(value, 0, 10)), [NaN, 0, 0.5, 1]);
  assert.deepEqual([-1, 0, 10].map((value) => shareOf(value, 1, 100, "log")), [NaN, NaN, 0.5]);
  assert.deepEqual([-100, 0, 100].map((value) => shareOf(value, -100, 100, "symlog")), [0, 0.5, 1]);
  assert.ok(shareOf(10, -100, 100, "symlog") > 0.75);
  assert.deepEqual([...colorTable("gray_r").slice(0, 3), ...colorTable("gray_r").slice(-3)], [255, 255, 255, 0, 0, 0]);
  for (const norm of ["linear", "log", "symlog", "sqrt", "square"]) assert.ok(Math.abs(valueAt(shareOf(7, 2, 50, norm), 2, 50, norm) - 7) < 1e-9);
});

test("limits ignore a few extremes and what is no number", () => {
  const values = Float64Array.from({ length: 1001 }, (_, at) => at);
  values[500] = 1e30;
  values[3] = NaN;
  const [low, high] = limitsOf(values);
  assert.ok(low > 10 && low < 30 && high > 970 && high < 990);
  assert.deepEqual(limitsOf(Float64Array.of(NaN)), [0, 1]);
  assert.deepEqual(limitsOf(Float64Array.of(4, 4)), [4, 5]);
  assert.deepEqual(limitsOf(Float64Array.of(-1, 3), "symmetric"), [-3, 3]);
  assert.deepEqual(limitsOf(Float64Array.of(-1, 0, 2, 3), "full", "log"), [2, 3]);
  assert.deepEqual(histogramOf(Float64Array.of(0, 1, 1.5, 4, NaN, 9), 0, 4, 4), [1, 2, 0, 1]);
});

test("a line keeps every peak", () => {
  const values = new Float64Array(10_000);
  values[5_001] = 9;
  values[7_003] = -9;
  values[0] = NaN;
  const { low, high } = ranges(values, 10);
  assert.deepEqual([high[5], low[7], high[0]], [9, -9, 0]);
});

test("a search shows matches and the groups above them", () => {
  type Shown = Parameters<typeof shownEntries>[0][number];
  const entry = (path: string, children: Shown[] | null = null, isOpen = false): Shown =>
    ({ path, name: path, depth: 0, member: { name: path, kind: "group" }, isOpen, children, next: null, problem: "" });
  const tree = [entry("", [entry("a", [entry("a/needle"), entry("a/hay")]), entry("b", [entry("b/hay")], true)], true)];
  assert.deepEqual(shownEntries(tree, "").map((one) => one.path), ["", "a", "b", "b/hay"]);
  assert.deepEqual(shownEntries(tree, "NEEDLE").map((one) => one.path), ["", "a", "a/needle"]);
});
