import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArrayNode, ZarrNode } from "../src/api.js";
import { parsePicks, positionsOf, reduce } from "../src/picks.js";
import { StaticApi } from "../src/static_api.js";

test("a query selects an index or a slice along each axis, and whole axes where it says nothing", () => {
  const { picks, sample } = parsePicks("0=3&1=2:99:2&sample=8", [5, 7, 4]);
  assert.deepEqual(picks.map(positionsOf), [[3], [2, 4, 6], [0, 1, 2, 3]]);
  assert.deepEqual(picks.map((pick) => pick.isIndex), [true, false, false]);
  assert.equal(sample, 8);
});

test("a sample moves positions into as many chunks as it may read, in their order", () => {
  const all = Array.from({ length: 8 }, (_, at) => at);
  assert.deepEqual(reduce([all], [2], 4), { positions: [all], isSample: false });
  assert.deepEqual(reduce([all], [2], 2), { positions: [[2, 2, 3, 3, 6, 6, 7, 7]], isSample: true });
});

test("a page without a server knows nodes, findings of all below one, and the chunk grid", async () => {
  const array = { kind: "array", path: "g/a", shape: [5, 6], grid: { chunks: [2, 3], shards: [4, 6] }, nchunks: [2, 1], findings: [{ rule: "R" }] } as unknown as ArrayNode;
  const api = new StaticApi("../data.zarr", { nodes: { "g/a": array, g: { kind: "group", path: "g", findings: [] } as unknown as ZarrNode }, coordinates: {} });
  assert.equal((await api.check("g"))?.length, 1);
  assert.deepEqual(await api.chunks("g/a", "0=:&1=4"), { chunks: [[0, 2, 4, 5], [3, 6]], values: [[0, 4, 5], [0, 6]], unit: "shard", grid: [2, 1], stored: null });
  await assert.rejects(api.node("missing"), /no node/);
});
