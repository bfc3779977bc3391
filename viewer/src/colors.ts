/** Colour maps, and the limits between which numbers get colours. Pure. */

import { symlogUnit } from "./scales.js";

/** Colours at evenly spaced points; those of viridis, gray and diverging are the points of `tessarr.tools.picture`. */
const POINTS: Record<string, string> = {
  viridis: "440154 482878 3e4a89 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
  magma: "000004 180f3e 451077 721f81 9f2f7f cd4071 f1605d fd9567 feca8d fcfdbf",
  inferno: "000004 1b0c42 4b0c6b 781c6d a52c60 cf4446 ed6925 fb9b06 f7d13d fcffa4",
  plasma: "0d0887 47039f 7301a8 9c179e bd3786 d8576b ed7953 fa9e3b fdc926 f0f921",
  cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
  gray: "000000 ffffff",
  diverging: "213c84 678cc8 becee6 f2f0ee eebca6 d46856 8c162c",
  phase: "a8780d d9515c be40bb 6876e2 20a0b0 3ea74a a8780d",
};

const REVERSED = "_r";

/** Maps, each also from its last colour to its first. */
export const MAP_NAMES = Object.keys(POINTS).flatMap((name) => [name, name + REVERSED]);

/** How limits follow from the values, with the text of each. */
export const LIMITS: Record<string, string> = { robust: "2 % to 98 %", full: "smallest to largest", symmetric: "symmetric about 0" };

/** How numbers between the limits become colours. */
export const NORMS: Record<string, string> = { linear: "linear", log: "logarithmic", symlog: "log about 0", sqrt: "square root", square: "square" };

const TABLES = new Map<string, Uint8Array>();

/** Return 256 colours of a map, three bytes each. */
export function colorTable(name: string): Uint8Array {
  const known = TABLES.get(name);
  if (known !== undefined) return known;
  const points = (POINTS[name.replace(REVERSED, "")] ?? POINTS["viridis"] ?? "").split(" ").map((text) => rgbOf(text));
  if (name.endsWith(REVERSED)) points.reverse();
  const table = new Uint8Array(256 * 3);
  for (let color = 0; color < 256; color++) {
    const position = (color / 255) * (points.length - 1);
    const below = Math.min(Math.floor(position), points.length - 2);
    for (let part = 0; part < 3; part++) {
      const from = points[below]?.[part] ?? 0;
      const to = points[below + 1]?.[part] ?? 0;
      table[3 * color + part] = Math.round(from + (to - from) * (position - below));
    }
  }
  TABLES.set(name, table);
  return table;
}

/** Read a colour of six hexadecimal digits; white for other text. */
export function rgbOf(text: string): [number, number, number] {
  const found = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(text);
  return found === null ? [255, 255, 255] : [parseInt(found[1] ?? "", 16), parseInt(found[2] ?? "", 16), parseInt(found[3] ?? "", 16)];
}

/** Return where a number is between limits, 0 to 1; NaN for no number, and for what has no logarithm. */
export function shareOf(value: number, low: number, high: number, norm = "linear"): number {
  if (Number.isNaN(value)) return NaN;
  if (norm === "log") {
    if (value <= 0) return NaN;
    return shareOf(Math.log(value), Math.log(low > 0 ? low : high / 1e6), Math.log(high));
  }
  if (norm === "symlog") {
    const unit = symlogUnit(low, high);
    return shareOf(Math.asinh(value / unit), Math.asinh(low / unit), Math.asinh(high / unit));
  }
  const share = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : value > low ? 1 : 0;
  return norm === "sqrt" ? Math.sqrt(share) : norm === "square" ? share * share : share;
}

/** Return the number at a share between limits: the inverse of `shareOf`. */
export function valueAt(share: number, low: number, high: number, norm = "linear"): number {
  if (norm === "log") {
    const from = Math.log(low > 0 ? low : high / 1e6);
    return Math.exp(from + share * (Math.log(high) - from));
  }
  if (norm === "symlog") {
    const unit = symlogUnit(low, high);
    return unit * Math.sinh(valueAt(share, Math.asinh(low / unit), Math.asinh(high / unit)));
  }
  return low + (norm === "sqrt" ? share * share : norm === "square" ? Math.sqrt(share) : share) * (high - low);
}

/** Choose limits for numbers in the way that `LIMITS` names; by default a few extreme values do not dominate. */
export function limitsOf(values: Float64Array, how = "robust", norm = "linear"): [number, number] {
  const finite = values.filter((value) => Number.isFinite(value) && (norm !== "log" || value > 0)).sort();
  if (finite.length === 0) return norm === "log" ? [1, 10] : [0, 1];
  const at = (share: number): number => finite[Math.round(share * (finite.length - 1))] ?? 0;
  const [least, most] = [at(0), at(1)];
  if (how === "symmetric") {
    const bound = Math.max(Math.abs(least), Math.abs(most)) || 1;
    return [-bound, bound];
  }
  const [low, high] = how === "full" ? [least, most] : [at(0.02), at(0.98)];
  if (high > low) return [low, high];
  return most > least ? [least, most] : [least, least + 1];
}

/** Count numbers in intervals of equal length between two edges. */
export function histogramOf(values: Float64Array, low: number, high: number, bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    if (value >= low && value <= high) {
      const bin = Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins));
      counts[bin] = (counts[bin] ?? 0) + 1;
    }
  }
  return counts;
}
