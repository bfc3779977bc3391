/** The grid of chunks and shards over a picture, and gray over what is not stored. */

import type { ChunkMap } from "./api.js";
import { type Plane, type Scale, sizeOf } from "./plane.js";

/** Lines that are closer than this are not drawn. */
const MIN_GAP = 4;

export function paintChunks(context: CanvasRenderingContext2D, plane: Plane, map: ChunkMap, scale: Scale): void {
  const [xs, ys] = [map.values[plane.x] ?? [], map.values[plane.y] ?? []];
  paintMissing(context, plane, map, scale);
  if (map.unit === "shard") {
    context.strokeStyle = "rgba(255, 255, 255, 0.8)";
    paintLines(context, plane, map.chunks[plane.x] ?? [], true, 1, scale);
    paintLines(context, plane, map.chunks[plane.y] ?? [], false, 1, scale);
  }
  context.strokeStyle = "rgba(255, 64, 64, 0.95)";
  const thickness = map.unit === "shard" ? 2 : 1;
  paintLines(context, plane, xs, true, thickness, scale);
  paintLines(context, plane, ys, false, thickness, scale);
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

function paintMissing(context: CanvasRenderingContext2D, plane: Plane, map: ChunkMap, scale: Scale): void {
  const [xs, ys] = [map.values[plane.x] ?? [], map.values[plane.y] ?? []];
  context.fillStyle = "rgba(128, 128, 128, 0.55)";
  for (let row = 0; row + 1 < ys.length; row++) {
    for (let column = 0; column + 1 < xs.length; column++) {
      if (!isMissing(plane, map, column, row)) continue;
      const [x0, x1, y0, y1] = [xs[column] ?? 0, xs[column + 1] ?? 0, ys[row] ?? 0, ys[row + 1] ?? 0];
      context.fillRect(
        scale.x + (x0 - scale.left) * scale.size, (y0 - scale.top) * scale.sizeY, (x1 - x0) * scale.size, (y1 - y0) * scale.sizeY,
      );
    }
  }
}

function paintLines(context: CanvasRenderingContext2D, plane: Plane, edges: number[], isX: boolean, thickness: number, scale: Scale): void {
  const pixels = isX ? scale.size : scale.sizeY;
  const gap = edges.length > 1 ? ((edges[1] ?? 0) - (edges[0] ?? 0)) * pixels : Infinity;
  if (gap < MIN_GAP) return;
  const [width, height] = sizeOf(plane);
  const [left, top] = [scale.x - scale.left * scale.size, -scale.top * scale.sizeY];
  const [right, bottom] = [left + width * scale.size, top + height * scale.sizeY];
  context.lineWidth = thickness;
  for (const edge of edges) {
    const at = Math.round((isX ? left : top) + edge * pixels) + 0.5;
    context.beginPath();
    context.moveTo(isX ? at : left, isX ? top : at);
    context.lineTo(isX ? at : right, isX ? bottom : at);
    context.stroke();
  }
}
