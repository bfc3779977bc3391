/** The grid of chunks and shards over a picture, and gray over what is not stored. */

import type { ChunkMap } from "./api.js";
import { type Plane, type Placed, sizeOf } from "./plane.js";

/** Lines that are closer than this are not drawn. */
const MIN_GAP = 4;

/** A path of SVG in pixels of the plot, and its class in the style of the page. */
export interface Lines {
  path: string;
  kind: "missing" | "chunk" | "shard" | "alone";
}

/** Return the path of the edge of a plane. Pure. */
export function edgeOf(plane: Plane, { x, y }: Placed): string {
  const [columns, rows] = sizeOf(plane);
  return `M${x(0)} ${y(0)}H${x(columns)}V${y(rows)}H${x(0)}Z`;
}

/** Return the lines of the grid that are in sight, and what is not stored. Pure. */
export function chunkLines(plane: Plane, map: ChunkMap, placed: Placed): Lines[] {
  const [xs, ys] = [map.values[plane.x] ?? [], map.values[plane.y] ?? []];
  const both = (x: number[], y: number[]): string => gridPath(plane, x, true, placed) + gridPath(plane, y, false, placed);
  return [
    { path: missingPath(plane, map, placed), kind: "missing" },
    ...(map.unit === "shard" ? [{ path: both(map.chunks[plane.x] ?? [], map.chunks[plane.y] ?? []), kind: "chunk" as const }] : []),
    { path: both(xs, ys), kind: map.unit === "shard" ? "shard" : "alone" },
  ];
}

/** Say what the lines are, and how many values are stored. Pure. */
export function gridText(plane: Plane, map: ChunkMap): string {
  const count = (edges: number[][]): number => ((edges[plane.x]?.length ?? 1) - 1) * ((edges[plane.y]?.length ?? 1) - 1);
  const values = count(map.values);
  const kinds = map.unit === "shard" ? `${values} shards (red) of ${count(map.chunks)} chunks (white)` : `${values} chunks (red)`;
  if (map.stored === null) return `${kinds}; too many to look which are stored`;
  const stored = map.stored.split("1").length - 1;
  return `${kinds} in this plane, ${stored === values ? "all" : stored} stored${stored === values ? "" : "; gray: not stored, read as the fill value"}`;
}

/** Return whether the value at a column and row of stored values is missing; the text is in the order of the array's axes. Pure. */
export function isMissing(plane: Plane, map: ChunkMap, column: number, row: number): boolean {
  const across = Math.max(0, (map.values[plane.x]?.length ?? 1) - 1);
  const down = Math.max(0, (map.values[plane.y]?.length ?? 1) - 1);
  return map.stored?.[plane.y < plane.x ? row * across + column : column * down + row] === "0";
}

function missingPath(plane: Plane, map: ChunkMap, { x, y, width, height }: Placed): string {
  const [xs, ys] = [map.values[plane.x] ?? [], map.values[plane.y] ?? []];
  let path = "";
  for (let row = 0; row + 1 < ys.length; row++) {
    const [top, bottom] = [y(ys[row] ?? 0), y(ys[row + 1] ?? 0)];
    if (Math.max(top, bottom) < 0 || Math.min(top, bottom) > height) continue;
    for (let column = 0; column + 1 < xs.length; column++) {
      if (!isMissing(plane, map, column, row)) continue;
      const first = column;
      while (column + 2 < xs.length && isMissing(plane, map, column + 1, row)) column++; // a row of them is one rectangle
      const [left, right] = [x(xs[first] ?? 0), x(xs[column + 1] ?? 0)].map((one) => Math.min(width + 1, Math.max(-1, one)));
      path += `M${left} ${top}H${right}V${bottom}H${left}Z`;
    }
  }
  return path;
}

function gridPath(plane: Plane, edges: number[], isX: boolean, { x, y, width, height }: Placed): string {
  const place = isX ? x : y;
  const gap = edges.length > 1 ? Math.abs(place(edges[1] ?? 0) - place(edges[0] ?? 0)) : Infinity;
  if (gap < MIN_GAP) return "";
  const [columns, rows] = sizeOf(plane);
  const [from, to] = (isX ? [y(0), y(rows)] : [x(0), x(columns)]).map((one) => Math.min((isX ? height : width) + 1, Math.max(-1, one)));
  const found = edges.map((edge) => Math.round(place(edge)) + 0.5).filter((at) => at >= -1 && at <= (isX ? width : height) + 1);
  return found.map((at) => (isX ? `M${at} ${from}V${to}` : `M${from} ${at}H${to}`)).join("");
}
