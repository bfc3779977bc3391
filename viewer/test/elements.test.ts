import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesText, dateMarks, elements, isKnown, markTexts, shortText, textOf, unpack } from "../src/elements.js";

const bytes = (...values: number[]): ArrayBuffer => Uint8Array.from(values).buffer;

test("integers of 64 bits are exact", () => {
  const read = elements(new BigUint64Array([2n ** 64n - 1n]).buffer, "<u8");
  assert.equal(textOf(read.at(0), "<u8"), "18446744073709551615");
});

test("a float of 16 or 32 bits is written with the digits that it needs", () => {
  const read = elements(new Float32Array([0.1, 16777216, 1 / 3, -0]).buffer, "<f4");
  assert.deepEqual([0, 1, 2, 3].map((at) => textOf(read.at(at), "<f4")), ["0.1", "16777216", "0.33333334", "-0"]);
  const halves = elements(new Uint16Array([0x2e66, 0x7c00, 0x0001, 0xc000, 0x7e00]).buffer, "<f2");
  assert.deepEqual([0, 1, 3, 4].map((at) => textOf(halves.at(at), "<f2")), ["0.1", "Infinity", "-2", "NaN"]);
  assert.equal(halves.number(2), 2 ** -24);
});

test("booleans, complex numbers and times have their own text", () => {
  assert.equal(textOf(elements(bytes(0, 1), "|b1").at(1), "|b1"), "true");
  const wave = elements(new Float64Array([3, -4]).buffer, "<c16");
  assert.equal(textOf(wave.at(0), "<c16"), "3-4j");
  assert.equal(wave.number(0), 5);
  const days = elements(new BigInt64Array([11016n, -(2n ** 63n), -1n]).buffer, "<M8[D]");
  assert.deepEqual([0, 1, 2].map((at) => days.at(at)), ["2000-02-29", "NaT", "1969-12-31"]);
  assert.ok(Number.isNaN(days.number(1)));
  const exact = elements(new BigInt64Array([1_000_000_001n]).buffer, "<M8[ns]");
  assert.equal(exact.at(0), "1970-01-01T00:00:01.000000001");
  assert.equal(elements(new BigInt64Array([5n]).buffer, "<m8[s]").at(0), "5 s");
});

test("types without bytes of a known meaning are not drawn", () => {
  assert.deepEqual(["<i2", "|b1", "<M8[ns]", "<f2"].map(isKnown), [true, true, true, true]);
  assert.deepEqual(["|O", "<V2", "struct", "<U5", "|S3", "<f16"].map(isKnown), [false, false, false, false, false, false]);
});

test("packed numbers are decoded, missing ones are NaN", () => {
  const packing = { scale: 0.5, offset: 10, missing: [-1, null] };
  assert.equal(unpack(packing, 4), 12);
  assert.ok(Number.isNaN(unpack(packing, -1)));
  assert.ok(Number.isNaN(unpack(packing, NaN)));
  assert.equal(unpack(null, 4), 4);
});

test("labels and sizes are short", () => {
  assert.deepEqual([0.1 + 0.2, 1e-9, 12345678, NaN].map(shortText), ["0.3", "1e-9", "1.23e+7", "NaN"]);
  assert.deepEqual([5, 2048, 3 * 2 ** 40].map(bytesText), ["5 bytes", "2.0 KiB", "3.0 TiB"]);
});

test("marks of an axis are told apart", () => {
  assert.deepEqual(markTexts([0, 0.5, 1]), ["0", "0.5", "1"]);
  assert.deepEqual(markTexts([1_704_000_000, 1_704_500_000]), ["1704000000", "1704500000"]);
  assert.deepEqual(markTexts([1.0000001, 1.0000002]), ["1.0000001", "1.0000002"]);
  assert.deepEqual(markTexts([3, 3]), ["3", "3"]);
});

test("dates are marked at whole days, hours or seconds", () => {
  const day = 86_400;
  const texts = (dtype: string, low: number, high: number, count: number): string[] => (dateMarks(dtype, low, high, count) ?? []).map((one) => one.text);
  assert.deepEqual(texts("<M8[s]", 19_723 * day, 19_733 * day, 5), ["2024-01-02", "2024-01-04", "2024-01-06", "2024-01-08", "2024-01-10"]);
  assert.deepEqual(texts("<M8[D]", 19_723, 19_725, 2), ["2024-01-01", "2024-01-02", "2024-01-03"]);
  assert.deepEqual(texts("<M8[ms]", 0, 7_200_000, 2), ["1970-01-01", "1970-01-01T01:00:00", "1970-01-01T02:00:00"]);
  assert.equal(dateMarks("<m8[s]", 0, 1, 2), null);
  assert.equal(dateMarks("<f8", 0, 1, 2), null);
});
