import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArrayNode } from "../src/api.js";
import { choose, coverage, overview, type Plane, stridesOf, tileQuery, tilesIn } from "../src/plane.js";
import { ticks, valueTicks } from "../src/ticks.js";
import { patchOf } from "../src/heatmap.js";
import { chunkLines, isMissing } from "../src/overlay.js";
import { viewsOf } from "../src/array_view.js";
import { colorAxis } from "../src/plane_axes.js";
import { positionOf } from "../src/axes.js";
import { isGeographic } from "../src/coast.js";
import { channelsOf } from "../src/image.js";

const node = (shape: number[], numpy = "<f4", chunks = shape.map(() => 64)): ArrayNode =>
  ({ kind: "array", path: "a", shape, numpy, is_raw: true, itemsize: 4, dimensions: shape.map(() => null), grid: { chunks, shards: null } }) as unknown as ArrayNode;

const plane: Plane = {
  x: 2, y: 1, indices: { 0: 7 },
  sources: [{ node: node([9, 1000, 2000]), factorX: 1, factorY: 1 }, { node: node([9, 250, 500]), factorX: 4, factorY: 4 }],
};

test("the coarsest level that is fine enough is chosen, and a power of two within it", () => {
  assert.deepEqual(choose(plane, 0.1), { source: 0, step: 1, stepY: 1 });
  assert.deepEqual(choose(plane, 3.9), { source: 0, step: 2, stepY: 2 });
  assert.deepEqual(choose(plane, 4), { source: 1, step: 1, stepY: 1 });
  assert.deepEqual(choose(plane, 17), { source: 1, step: 4, stepY: 4 });
  assert.deepEqual(choose(plane, 17, 0.1), { source: 0, step: 16, stepY: 1 }); // stretched along y
});

test("one tile holds the whole plane", () => {
  assert.deepEqual(overview(plane), { source: 1, step: 2, stepY: 1, column: 0, row: 0 });
  assert.deepEqual(coverage(plane, overview(plane)), { left: 0, top: 0, right: 500, bottom: 250 });
});

test("tiles cover a box and stay within the plane", () => {
  const found = tilesIn(plane, { left: -100, top: 200, right: 600, bottom: 5000 }, { source: 0, step: 1, stepY: 1 });
  assert.deepEqual(found.map(({ column, row }) => [column, row]), [0, 1, 2, 3].flatMap((row) => [[0, row], [1, row], [2, row]]));
  assert.deepEqual(coverage(plane, { source: 0, step: 1, stepY: 1, column: 7, row: 3 }), { left: 1792, top: 768, right: 2000, bottom: 1000 });
});

test("a tile is requested by indices of all axes", () => {
  assert.equal(tileQuery(plane, { source: 1, step: 2, stepY: 2, column: 0, row: 0 }), "0=7&1=0:250:2&2=0:500:2&sample=64");
});

test("strides follow the axes of the array, not of the picture", () => {
  assert.deepEqual(stridesOf(plane, [250, 500]), { x: 1, y: 500, color: 0 });
  assert.deepEqual(stridesOf({ ...plane, x: 1, y: 2 }, [250, 500]), { x: 500, y: 1, color: 0 });
  assert.deepEqual(stridesOf({ ...plane, x: 1, y: 0, color: 2 }, [10, 20, 3]), { x: 3, y: 60, color: 1 });
});

test("ticks are round and few", () => {
  assert.deepEqual(ticks(0, 100, 5), [0, 20, 40, 60, 80]);
  assert.deepEqual(ticks(3.2, 6, 9), [4, 5]);
  assert.deepEqual(valueTicks(-1.03, 1.03, 4), [-1, 0, 1]);
  assert.deepEqual(valueTicks(5, 5, 4), [5]);
});

test("views suit the type and the axes", () => {
  assert.deepEqual(viewsOf(node([4, 4])), ["heatmap", "surface", "line", "scatter", "table"]);
  assert.deepEqual(viewsOf(node([4])), ["line", "scatter", "table"]);
  assert.deepEqual(viewsOf(node([])), ["table"]);
  assert.deepEqual(viewsOf(node([4, 4], "|O")), ["table"]);
  assert.deepEqual(viewsOf(node([4, 4, 3], "|u1")), ["rgb", "heatmap", "surface", "line", "scatter", "table"]);
  assert.equal(colorAxis(node([4, 4, 3])), undefined);
});

test("stored values are found in the order of the array's axes", () => {
  const map = { chunks: [], values: [[3, 4], [0, 4, 8], [0, 4, 8, 12]], unit: "chunk" as const, grid: [9, 2, 3], stored: "110111" };
  assert.ok(isMissing(plane, map, 2, 0));
  assert.ok(isMissing({ ...plane, x: 1, y: 2 }, map, 0, 2));
  assert.ok(!isMissing(plane, map, 2, 1));
});

test("a position among coordinates is found whichever way they run, and beyond their ends", () => {
  assert.equal(positionOf(15, [0, 10, 20]), 1.5);
  assert.equal(positionOf(15, [20, 10, 0]), 0.5);
  assert.equal(positionOf(-5, [0, 10, 20]), -0.5);
  assert.ok(isGeographic("lon", "x", "degrees_east") && isGeographic("lat", "latitude", null) && !isGeographic("lat", "lat", "m"));
});

test("channels of an image have the colours and limits that it says, and some where it says none", () => {
  const attributes = { ome: { omero: { channels: [{ label: "DAPI", color: "0000FF", window: { start: 5, end: 50 }, active: false }, "not a channel"] } } };
  assert.deepEqual(channelsOf(attributes, 2), [
    { name: "DAPI", color: [0, 0, 255], window: [5, 50], isShown: false },
    { name: "Channel 1", color: [255, 0, 255], window: null, isShown: true },
  ]);
});

test("of a tile the part in sight is drawn, also where columns run to the left", () => {
  const texels = { id: 0, width: 4, height: 4, data: new Uint8ClampedArray(64) };
  const placed = { x: (column: number) => column, y: (row: number) => row, size: 1, sizeY: 1, width: 100, height: 50 };
  const [right] = patchOf({ texels, isSmooth: false, behind: 0, left: -50, right: 150, top: 0, bottom: 40 }, placed, 1, false);
  assert.deepEqual([right?.left, right?.right, right?.share], [0, 100, { left: 0.25, right: 0.75, top: 0, bottom: 1 }]);
  const [left] = patchOf({ texels, isSmooth: false, behind: 0, left: 150, right: -50, top: 40, bottom: 0 }, placed, 1, false);
  assert.deepEqual([left?.left, left?.right, ...Object.values(left?.share ?? {}).map((one) => one + 0)], [0, 100, 0.75, 0.25, 1, 0]);
  assert.deepEqual(patchOf({ texels, isSmooth: false, behind: 0, left: 100, right: 120, top: 0, bottom: 40 }, placed, 1, false), []);
});

test("the grid has the lines in sight, and one rectangle for neighbours that are not stored", () => {
  const shown = { x: 1, y: 0, indices: {}, sources: [{ node: { shape: [20, 40] } as never, factorX: 1, factorY: 1 }] };
  const map = { unit: "chunk", values: [[0, 10, 20], [0, 10, 20, 30, 40]], chunks: [], stored: "10010000" } as never;
  const placed = { x: (column: number) => 2 * column, y: (row: number) => 2 * row, size: 2, sizeY: 2, width: 50, height: 40 };
  const lines = chunkLines(shown, map, placed);
  assert.equal(lines[0]?.path, "M20 0H51V20H20ZM0 20H51V40H0Z");
  assert.deepEqual(lines[1], { kind: "alone", path: "M0.5 0V40M20.5 0V40M40.5 0V40M0 0.5H51M0 20.5H51M0 40.5H51" });
});
