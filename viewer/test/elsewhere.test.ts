import assert from "node:assert/strict";
import { test } from "node:test";
import type { ZarrNode } from "../src/api.js";
import { openers } from "../src/elsewhere.js";

const node = (fields: Partial<Record<string, unknown>>): ZarrNode => ({ name: "air", path: "air", zarr_format: 3, ...fields }) as unknown as ZarrNode;
const URL_ = "http://127.0.0.1:8000/t/s/data.zarr/air";

test("an array opens in Python by its URL, in xarray by that of its group, and in neuroglancer by its format", () => {
  const texts = new Map(openers(node({ kind: "array" }), URL_, "http://127.0.0.1:8000/t/s/data.zarr"));
  assert.equal(texts.get("Python, tessarr"), `import tessarr\nnode = tessarr.open("${URL_}", mode="r")`);
  assert.equal(texts.get("Python, xarray"), 'import xarray\ndata = xarray.open_zarr("http://127.0.0.1:8000/t/s/data.zarr")');
  assert.equal(texts.get("Neuroglancer, source of a layer"), `zarr3://${URL_}`);
  assert.equal(new Map(openers(node({ kind: "array", zarr_format: 2 }), URL_, "")).get("Neuroglancer, source of a layer"), `zarr2://${URL_}`);
});

test("a group opens in xarray by its own URL, and in neuroglancer only if it is an image", () => {
  const texts = new Map(openers(node({ kind: "group", pyramids: [] }), URL_, ""));
  assert.equal(texts.get("Python, xarray"), `import xarray\ndata = xarray.open_zarr("${URL_}")`);
  assert.equal(texts.has("Neuroglancer, source of a layer"), false);
  assert.equal(new Map(openers(node({ kind: "group", pyramids: [{}] }), URL_, "")).get("Neuroglancer, source of a layer"), `zarr3://${URL_}`);
});
