/** Round numbers along an axis. Pure. */

export interface Tick {
  /** Index, which may lie between two elements. */
  at: number;
  text: string;
}

/** Return round indices between two edges, at most `count` of them. */
export function ticks(from: number, to: number, count: number): number[] {
  const step = Math.max(1, Math.round(roundStep((to - from) / Math.max(1, count))));
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < to && found.length <= count + 1; at += step) found.push(at);
  return found;
}

/** Return round numbers between two numbers, about `count` of them. */
export function valueTicks(low: number, high: number, count: number): number[] {
  if (!(high > low) || !Number.isFinite(high - low)) return [low];
  const step = roundStep((high - low) / Math.max(1, count));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.min(100, last - first + 1) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Return the smallest of 1, 2, 5 times a power of ten that is at least a number. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, Number.MIN_VALUE)));
  return [1, 2, 5, 10].map((part) => part * power).find((one) => one >= least * 0.999) ?? least;
}
