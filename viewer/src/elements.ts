/** Elements of arrays: bytes to values of their type, exactly, and values to text. */

import type { ArrayNode, Packing } from "./api.js";
import { valueTicks } from "./ticks.js";

export type Element = number | bigint | boolean | [number, number] | string;

export interface Elements {
  readonly length: number;
  /** The element itself. */
  at(index: number): Element;
  /** A number to draw: NaN for no number. */
  number(index: number): number;
}

const MAKERS: Record<string, (bytes: ArrayBuffer) => ArrayLike<number>> = {
  i1: (bytes) => new Int8Array(bytes),
  u1: (bytes) => new Uint8Array(bytes),
  i2: (bytes) => new Int16Array(bytes),
  u2: (bytes) => new Uint16Array(bytes),
  i4: (bytes) => new Int32Array(bytes),
  u4: (bytes) => new Uint32Array(bytes),
  f4: (bytes) => new Float32Array(bytes),
  f8: (bytes) => new Float64Array(bytes),
};

const UNITS: Record<string, bigint> = { ns: 1n, us: 1_000n, ms: 1_000_000n, s: 1_000_000_000n, m: 60_000_000_000n, h: 3_600_000_000_000n, D: 86_400_000_000_000n };

/** Whether elements of a type (NumPy's name of it) can be read from bytes here. */
export function isKnown(dtype: string): boolean {
  return /^[|<](b1|[iu][1248]|f[248]|c8|c16)$/.test(dtype) || /^<[mM]8\[\d*(ns|us|ms|s|m|h|D)\]$/.test(dtype);
}

/** Read elements from little-endian bytes. */
export function elements(bytes: ArrayBuffer, dtype: string): Elements {
  const kind = dtype.slice(1);
  const maker = MAKERS[kind];
  if (maker !== undefined) {
    const values = maker(bytes);
    return { length: values.length, at: (index) => values[index] ?? NaN, number: (index) => values[index] ?? NaN };
  }
  if (kind === "b1") {
    const values = new Uint8Array(bytes);
    return { length: values.length, at: (index) => values[index] !== 0, number: (index) => values[index] ?? NaN };
  }
  if (kind === "f2") {
    const halves = new Uint16Array(bytes);
    const at = (index: number): number => half(halves[index] ?? 0x7e00);
    return { length: halves.length, at, number: at };
  }
  if (kind === "c8" || kind === "c16") {
    const parts = kind === "c8" ? new Float32Array(bytes) : new Float64Array(bytes);
    return {
      length: parts.length / 2,
      at: (index) => [parts[2 * index] ?? NaN, parts[2 * index + 1] ?? NaN],
      number: (index) => Math.hypot(parts[2 * index] ?? NaN, parts[2 * index + 1] ?? NaN),
    };
  }
  const whole = kind === "u8" ? new BigUint64Array(bytes) : new BigInt64Array(bytes);
  const step = stepOf(dtype, "mM");
  if (step === null) {
    return { length: whole.length, at: (index) => whole[index] ?? 0n, number: (index) => Number(whole[index] ?? 0n) };
  }
  const text = kind.startsWith("M") ? moment : duration;
  return {
    length: whole.length,
    at: (index) => text(whole[index] ?? NAT, step),
    number: (index) => ((whole[index] ?? NAT) === NAT ? NaN : Number(whole[index] ?? NAT)),
  };
}

const NAT = -(1n << 63n);

/** Return the nanoseconds that a type of dates (M) or durations (m) counts in; `null`: another type. */
function stepOf(dtype: string, kinds: string): bigint | null {
  const found = new RegExp(`^<[${kinds}]8\\[(\\d*)(\\w+)\\]$`).exec(dtype);
  return found === null ? null : BigInt(found[1] || "1") * (UNITS[found[2] ?? "ns"] ?? 1n);
}

function moment(count: bigint, step: bigint): string {
  if (count === NAT) return "NaT";
  const total = count * step;
  const milliseconds = total / 1_000_000n - (total % 1_000_000n < 0n ? 1n : 0n);
  const date = new Date(Number(milliseconds));
  if (Number.isNaN(date.getTime())) return `${count}`;
  const rest = total - milliseconds * 1_000_000n;
  const text = date.toISOString().replace("Z", "");
  return rest !== 0n ? text + rest.toString().padStart(6, "0") : text.replace(/\.000$/, "").replace(/T00:00:00$/, "");
}

function duration(count: bigint, step: bigint): string {
  if (count === NAT) return "NaT";
  return `${count * step} ns`.replace(/000000000 ns$/, " s");
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/** Write an element so that it can be read again exactly: a float32 with the digits that a float32 needs. */
export function textOf(element: Element, dtype: string): string {
  if (typeof element === "number") return numberText(element, dtype);
  if (Array.isArray(element)) {
    const part = dtype.endsWith("c8") ? "<f4" : "<f8";
    const imaginary = numberText(element[1], part);
    return `${numberText(element[0], part)}${imaginary.startsWith("-") ? "" : "+"}${imaginary}j`;
  }
  return String(element);
}

/** How floats are written in tables, with the text of each. */
export const NOTATIONS: Record<string, string> = { exact: "exact", fixed: "decimal", scientific: "scientific" };

/** Write an element in a notation (`NOTATIONS`): floats with six digits, anything else exactly. */
export function notedText(element: Element, dtype: string, notation: string): string {
  if (typeof element !== "number" || notation === "exact" || !/f[248]$/.test(dtype) || !Number.isFinite(element)) return textOf(element, dtype);
  return notation === "fixed" ? element.toFixed(6) : element.toExponential(6);
}

function numberText(value: number, dtype: string): string {
  const digits = dtype.endsWith("f4") ? 9 : dtype.endsWith("f2") ? 5 : 0;
  if (Object.is(value, -0)) return "-0";
  if (digits === 0 || !Number.isFinite(value)) return String(value);
  for (let precision = 1; precision < digits; precision++) {
    const shorter = Number(value.toPrecision(precision));
    if (dtype.endsWith("f4") ? Math.fround(shorter) === value : Math.abs(shorter - value) < halfSpacing(value)) return String(shorter);
  }
  return String(Number(value.toPrecision(digits)));
}

/** Return half the distance between neighbouring float16 numbers at a value. */
function halfSpacing(value: number): number {
  return 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(value)))) - 11);
}

/** Decode a stored number: NaN where it stands for "missing". */
export function unpack(packing: Packing | null, stored: number): number {
  if (packing === null) return stored;
  for (const missing of packing.missing) {
    if (missing === stored || (missing === null && Number.isNaN(stored))) return NaN;
  }
  return stored * packing.scale + packing.offset;
}

/** Write an element of an array: decoded, with its unit, and as it is stored where that differs. */
export function elementText(node: ArrayNode, element: Element, dtype: string): string {
  const stored = textOf(element, dtype);
  const unit = node.units === null ? "" : ` ${node.units}`;
  if (node.packing === null || typeof element === "object") return stored + unit;
  const decoded = unpack(node.packing, Number(element));
  return Number.isNaN(decoded) ? `missing (stored ${stored})` : `${shortText(decoded)}${unit} (stored ${stored})`;
}

/** Write a number shortly, for axes and colour bars. */
export function shortText(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e7)) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(6)));
}

/** Write numbers along an axis shortly, with as many digits as tell them apart. */
export function markTexts(values: number[]): string[] {
  const count = new Set(values).size;
  for (const write of [shortText, ...[9, 12, 15].map((digits) => (value: number): string => String(Number(value.toPrecision(digits))))]) {
    const texts = values.map(write);
    if (new Set(texts).size === count) return texts;
  }
  return values.map(String);
}

/** Return about `count` dates to mark between two counts of a type of dates (NumPy's name): whole days, hours, minutes or seconds; `null`: another type. */
export function dateMarks(dtype: string, low: number, high: number, count: number): { value: number; text: string }[] | null {
  const step = stepOf(dtype, "M");
  if (step === null) return null;
  const lengths = [86_400, 3600, 60, 1].map((seconds) => (seconds * 1e9) / Number(step));
  const unit = lengths.find((one) => high - low >= 2 * one) ?? 1;
  return valueTicks(low / unit, high / unit, count).map((at) => ({ value: at * unit, text: moment(BigInt(Math.round(at * unit)), step) }));
}

/** Write a number of bytes with a binary unit. */
export function bytesText(count: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  let rest = count;
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${rest} bytes` : `${rest.toFixed(1)} ${units[unit]}`;
}
