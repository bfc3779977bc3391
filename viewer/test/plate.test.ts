import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf, plateOf } from "../src/plate.js";

const rows = [{ name: "A" }, { name: "B" }];
const columns = [{ name: "1" }, { name: "2" }, { name: "3" }];

test("wells are placed by their indices, or by their path", () => {
  const wells = [{ path: "A/1", rowIndex: 0, columnIndex: 0 }, { path: "B/3" }];
  const expected = { rows: ["A", "B"], columns: ["1", "2", "3"], wells: [["A/1", null, null], [null, null, "B/3"]] };
  assert.deepEqual(plateOf({ plate: { rows, columns, wells } }), expected);
  assert.deepEqual(plateOf({ ome: { version: "0.5", plate: { rows, columns, wells } } }), expected);
});

test("what is malformed, outside or too large is left out", () => {
  assert.equal(plateOf({}), null);
  assert.equal(plateOf({ plate: { rows: "A", columns, wells: [] } }), null);
  assert.equal(plateOf({ plate: { rows: [{ name: 1 }], columns, wells: [] } }), null);
  const many = Array.from({ length: 100 }, (_, at) => ({ name: String(at) }));
  assert.equal(plateOf({ plate: { rows: many, columns: many, wells: [] } }), null);
  const wells = [{ path: "../A/1", rowIndex: 0, columnIndex: 0 }, { path: "A/9", rowIndex: 0, columnIndex: 9 }, { path: "A/1", rowIndex: "0" }, null];
  assert.deepEqual(plateOf({ plate: { rows, columns, wells } })?.wells, [[null, null, null], [null, null, null]]);
});

test("the fields of a well are paths below it", () => {
  assert.deepEqual(fieldsOf({ ome: { well: { images: [{ path: "0" }, { path: "../1" }, {}] } } }), ["0"]);
  assert.deepEqual(fieldsOf(undefined), []);
});
