/** Selections in queries, as the page writes them: `0=3&1=0:256:2&sample=64`. Pure. */

/** Positions along one axis: an index (a pick that is dropped from the shape), or a slice. */
export interface Pick {
  start: number;
  stop: number;
  step: number;
  isIndex: boolean;
}

/** Read the query of a request: a pick per axis, whole axes where it names none, and the number of chunks that suffice. */
export function parsePicks(query: string, shape: number[]): { picks: Pick[]; sample: number } {
  const values = new URLSearchParams(query);
  const picks = shape.map((length, axis): Pick => {
    const text = values.get(String(axis)) ?? ":";
    if (!text.includes(":")) return { start: Number(text), stop: Number(text) + 1, step: 1, isIndex: true };
    const [start = "", stop = "", step = ""] = text.split(":");
    return { start: start === "" ? 0 : Number(start), stop: Math.min(length, stop === "" ? length : Number(stop)), step: step === "" ? 1 : Number(step), isIndex: false };
  });
  return { picks, sample: Number(values.get("sample") ?? Infinity) };
}

/** List the positions of a pick. */
export function positionsOf({ start, stop, step }: Pick): number[] {
  return Array.from({ length: Math.max(0, Math.ceil((stop - start) / step)) }, (_, at) => start + at * step);
}

/**
 * Move the positions along each axis into fewer chunks, at most `most` in all: one chunk then stands for a block of chunks, and the
 * order of positions within a block stays. As `tessarr.serve.dynamic.reading` does.
 */
export function reduce(positions: number[][], chunks: number[], most: number): { positions: number[][]; isSample: boolean } {
  const touched = positions.map((one, axis) => [...new Set(one.map((at) => Math.floor(at / (chunks[axis] ?? 1))))]);
  const kept = touched.map((one) => one.length);
  const product = (): number => kept.reduce((all, count) => all * count, 1);
  while (product() > Math.max(1, most)) {
    const largest = kept.indexOf(Math.max(...kept));
    kept[largest] = Math.ceil((kept[largest] ?? 1) / 2);
  }
  const isSample = kept.some((count, axis) => count < (touched[axis]?.length ?? 0));
  return { isSample, positions: positions.map((one, axis) => moved(one, chunks[axis] ?? 1, touched[axis] ?? [], kept[axis] ?? 1)) };
}

function moved(positions: number[], chunk: number, touched: number[], count: number): number[] {
  if (count >= touched.length) return positions;
  const order = new Map(touched.map((one, at) => [one, at]));
  const blocks: number[][] = Array.from({ length: count }, () => []);
  positions.forEach((position, at) => blocks[Math.floor(((order.get(Math.floor(position / chunk)) ?? 0) * count) / touched.length)]?.push(at));
  const found = [...positions];
  for (const members of blocks) {
    const inside = [...new Set(members.map((at) => Math.floor((positions[at] ?? 0) / chunk)))];
    const start = (inside[Math.floor(inside.length / 2)] ?? 0) * chunk;
    const last = positions.at(-1) ?? 0;
    const size = Math.min(chunk, last + 1 - start);
    members.forEach((at, number) => (found[at] = start + Math.floor((number * size) / members.length)));
  }
  return found;
}
