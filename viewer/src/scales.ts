/** Scales of axes of numbers: where a number is between two edges, linear or not, and the numbers that are marked. Pure. */

import { valueTicks } from "./ticks.js";

/** Scales of axes, with the text of each. */
export const SCALES: Record<string, string> = { linear: "linear", log: "logarithmic", symlog: "log about 0" };

/** How far below the larger edge `symlog` becomes linear. */
const SYMLOG_RATIO = 1e3;

export interface Scaling {
  /** Return where a number is: 0 at the first edge, 1 at the last; NaN for no number, and for what has no logarithm. */
  share(value: number): number;
  /** Return the number at a share: the inverse. */
  value(share: number): number;
  /** Return about `count` numbers between the edges to mark. */
  ticks(count: number): number[];
}

/**
 * Make the scale of a kind (`SCALES`) between two edges, the first below the last; those of `log` are above 0. `all`: the edges of all numbers,
 * from which follows where `symlog` becomes linear, so that two parts of an axis differ by a shift and a factor.
 */
export function scalingOf(kind: string, [low, high]: [number, number], all: [number, number] = [low, high]): Scaling {
  if (kind === "log") return scaledBy(Math.log10, (one) => 10 ** one, low, high, (count) => decades(low, high, count));
  if (kind === "symlog") {
    const unit = symlogUnit(...all);
    return scaledBy((one) => Math.asinh(one / unit), (one) => unit * Math.sinh(one), low, high, (count) => aboutZero(low, high, unit, count));
  }
  return scaledBy((one) => one, (one) => one, low, high, (count) => valueTicks(low, high, count));
}

/** Return the number below which a scale about 0 is linear. */
export function symlogUnit(low: number, high: number): number {
  return Math.max(Math.abs(low), Math.abs(high)) / SYMLOG_RATIO || 1;
}

function scaledBy(to: (value: number) => number, from: (value: number) => number, low: number, high: number, ticks: (count: number) => number[]): Scaling {
  const [first, last] = [to(low), to(high)];
  return {
    share: (value) => {
      const found = (to(value) - first) / (last - first);
      return Number.isFinite(found) ? found : NaN;
    },
    value: (share) => from(first + share * (last - first)),
    ticks,
  };
}

/** Return edges a little beyond the least and the largest of some numbers, on a scale that shows all of them that it can. */
export function edgesOf(lists: Float64Array[], kind: string): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const values of lists) {
    for (const value of values) {
      if (!Number.isFinite(value) || (kind === "log" && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (!Number.isFinite(low)) return kind === "log" ? [1, 10] : [0, 1];
  if (low === high) return kind === "log" ? [low / 2, low * 2] : [low - 1, low + 1];
  const scaling = scalingOf(kind, [low, high]);
  const wide: [number, number] = [scaling.value(-0.03), scaling.value(1.03)];
  return wide[0] < low && wide[1] > high && wide.every(Number.isFinite) ? wide : [low, high];
}

/** Return powers of ten between two positive numbers, with 2 and 5 times them where there are few. */
function decades(low: number, high: number, count: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.max(1, Math.ceil((last - first) / Math.max(1, count)));
  const parts = (last - first) * 3 <= count ? [1, 2, 5] : [1];
  const found: number[] = [];
  for (let power = first; power <= last; power += every) found.push(...parts.map((part) => Number((part * 10 ** power).toPrecision(3))));
  const inside = found.filter((one) => one >= low && one <= high);
  return inside.length > 1 ? inside : valueTicks(low, high, count);
}

function aboutZero(low: number, high: number, unit: number, count: number): number[] {
  const side = (most: number): number[] => (most > unit ? decades(unit, most, Math.ceil(count / 2)) : []);
  const found = [...side(-low).map((one) => -one).reverse(), 0, ...side(high)];
  const inside = found.filter((one) => one >= low && one <= high);
  return inside.length > 1 ? inside : valueTicks(low, high, count);
}
