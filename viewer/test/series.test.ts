import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArrayNode } from "../src/api.js";
import { spanAfter } from "../src/line.js";
import { partOf } from "../src/series.js";

const node = (shape: number[], chunks: number[], itemsize = 8): ArrayNode =>
  ({ kind: "array", path: "a", shape, itemsize, nchunks: shape.map((length, axis) => Math.ceil(length / (chunks[axis] ?? 1))), grid: { chunks, shards: null } }) as unknown as ArrayNode;

test("a span is zoomed about an element, and stays within the axis", () => {
  assert.equal(spanAfter([0, 100], 100, { factor: 0.5 }), null);
  assert.deepEqual(spanAfter([0, 100], 100, { factor: 2 }), [25, 75]);
  assert.deepEqual(spanAfter([0, 100], 100, { factor: 2, at: 100 }), [50, 100]);
  assert.deepEqual(spanAfter([25, 75], 100, { by: 1000 }), [50, 100]);
  assert.deepEqual(spanAfter([25, 75], 100, { by: -1000 }), [0, 50]);
  assert.deepEqual(spanAfter([10, 14], 100, { factor: 1e9, at: 12 }), [10, 14]);
  assert.equal(spanAfter([0, 3], 3, { factor: 2 }), null);
});

test("few chunks are read whole", () => {
  const part = partOf(node([5, 1000], [1, 10]), { 0: 3 }, 1, [-500, 1500], false);
  assert.deepEqual([part.query, part.span, part.step, part.read, part.count], ["0=3&1=0:1000:1", [0, 1000], 1, 100, 100]);
});

test("of many chunks some are read, and all of a short span", () => {
  const long = node([1_000_000_000_000], [1_000_000]);
  const all = partOf(long, {}, 0, [0, 1_000_000_000_000], false);
  assert.equal(all.count, 1_000_000);
  assert.equal(all.read, 33); // of 8 MB each, within 256 MiB
  assert.equal(all.query, "0=0:1000000000000:4000000&sample=33");
  const some = partOf(long, {}, 0, [5_000_000.5, 5_000_100], false);
  assert.deepEqual([some.query, some.span, some.count], ["0=5000000:5000100:1", [5_000_000, 5_000_100], 1]);
  assert.equal(partOf(long, {}, 0, [0, 100_000_000], true).query, "0=0:100000000:25");
});
