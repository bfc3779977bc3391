/** Colour maps: 256 colours between a few points. The points are those of `tessarr.tools.picture`. */

const POINTS: Record<string, number[][]> = {
  viridis: [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]],
  gray: [[0, 0, 0], [255, 255, 255]],
  diverging: [[33, 60, 132], [103, 140, 200], [190, 206, 230], [242, 240, 238], [238, 188, 166], [212, 104, 86], [140, 22, 44]],
};

export const MAP_NAMES = Object.keys(POINTS);

const TABLES = new Map<string, Uint8Array>();

/** Return 256 colours of a map, three bytes each. */
export function colorTable(name: string): Uint8Array {
  const known = TABLES.get(name);
  if (known !== undefined) return known;
  const points = POINTS[name] ?? POINTS["viridis"] ?? [];
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

/** Return the number of the colour of a value, 0 to 255; -1 for no number. */
export function colorOf(value: number, low: number, high: number): number {
  if (Number.isNaN(value)) return -1;
  const share = high > low ? (value - low) / (high - low) : value > low ? 1 : 0;
  return Math.round(255 * Math.min(1, Math.max(0, share)));
}

/** Return limits that a few extreme values do not dominate: the 2nd and 98th percentile of finite numbers. */
export function limitsOf(values: Float64Array): [number, number] {
  const finite = values.filter(Number.isFinite).sort();
  if (finite.length === 0) return [0, 1];
  const at = (share: number): number => finite[Math.round(share * (finite.length - 1))] ?? 0;
  const [low, high] = [at(0.02), at(0.98)];
  if (high > low) return [low, high];
  const [least, most] = [at(0), at(1)];
  return most > least ? [least, most] : [least, least + 1];
}
