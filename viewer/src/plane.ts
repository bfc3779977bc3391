/** A plane of an array, in tiles: which level and step suit a scale, what a tile covers, and how it is requested. Pure. */

import { type ArrayNode, queryOf } from "./api.js";

/** Samples along each side of a tile. */
export const TILE = 256;

/** An array from which a plane is read: the array itself, or a level of its pyramid. */
export interface Source {
  node: ArrayNode;
  /** Elements of the finest level along an element of this one. */
  factorX: number;
  factorY: number;
}

export interface Plane {
  x: number;
  y: number;
  /** Axis of red, green and blue; `undefined` for numbers. */
  color?: number;
  /** Index along every other axis. */
  indices: Record<number, number>;
  /** The finest first. */
  sources: Source[];
}

/** Where elements of the finest level are on the plot: pixels from its left and its top. */
export interface Placed {
  x: (column: number) => number;
  y: (row: number) => number;
  /** Pixels per element. */
  size: number;
  sizeY: number;
  /** Size of the plot in pixels. */
  width: number;
  height: number;
}

export interface TileId {
  source: number;
  /** Every how many elements are read along x, and along y. */
  step: number;
  stepY: number;
  column: number;
  row: number;
}

/** Left, top, right and bottom edge, in elements of the finest level. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function sizeOf(plane: Plane, source = 0): [number, number] {
  const shape = plane.sources[source]?.node.shape ?? [];
  return [shape[plane.x] ?? 1, shape[plane.y] ?? 1];
}

/** Choose the source and the steps (powers of two) for a picture with so many elements of the finest level per pixel along x, and along y. */
export function choose(plane: Plane, elements: number, elementsY = elements): { source: number; step: number; stepY: number } {
  let source = 0;
  plane.sources.forEach((one, at) => {
    if (Math.max(one.factorX, one.factorY) <= Math.max(1, Math.min(elements, elementsY)) * 1.0001) source = at;
  });
  const chosen = plane.sources[source];
  const factor = chosen === undefined ? 1 : Math.max(chosen.factorX, chosen.factorY);
  const stepOf = (count: number): number => 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, count / factor))));
  return { source, step: stepOf(elements), stepY: stepOf(elementsY) };
}

/** Return the one tile that holds the whole plane. */
export function overview(plane: Plane): TileId {
  const source = plane.sources.length - 1;
  const [width, height] = sizeOf(plane, source);
  const stepOf = (length: number): number => 2 ** Math.max(0, Math.ceil(Math.log2(length / TILE)));
  return { source, step: stepOf(width), stepY: stepOf(height), column: 0, row: 0 };
}

export function keyOf(tile: TileId): string {
  return `${tile.source}/${tile.step}/${tile.stepY}/${tile.column}/${tile.row}`;
}

/** Return what a tile covers in elements of its source. */
export function coverage(plane: Plane, tile: TileId): Box {
  const [width, height] = sizeOf(plane, tile.source);
  const [side, sideY] = [TILE * tile.step, TILE * tile.stepY];
  return {
    left: tile.column * side,
    top: tile.row * sideY,
    right: Math.min(width, (tile.column + 1) * side),
    bottom: Math.min(height, (tile.row + 1) * sideY),
  };
}

/** List the tiles of one source and its steps that touch a box of the finest level. */
export function tilesIn(plane: Plane, box: Box, { source, step, stepY }: { source: number; step: number; stepY: number }): TileId[] {
  const one = plane.sources[source];
  if (one === undefined) return [];
  const [width, height] = sizeOf(plane, source);
  const first = (edge: number, factor: number, side: number): number => Math.max(0, Math.floor(edge / factor / side));
  const last = (edge: number, factor: number, length: number, side: number): number =>
    Math.min(Math.ceil(length / side), Math.ceil(edge / factor / side));
  const found: TileId[] = [];
  const [side, sideY] = [TILE * step, TILE * stepY];
  for (let row = first(box.top, one.factorY, sideY); row < last(box.bottom, one.factorY, height, sideY); row++) {
    for (let column = first(box.left, one.factorX, side); column < last(box.right, one.factorX, width, side); column++) {
      found.push({ source, step, stepY, column, row });
    }
  }
  return found;
}

/** Write the query of a tile: a slice along x and y, an index along the other axes. */
export function tileQuery(plane: Plane, tile: TileId): string {
  const { left, top, right, bottom } = coverage(plane, tile);
  const node = plane.sources[tile.source]?.node;
  const sides: Record<number, string> = {
    [plane.x]: `${left}:${right}:${tile.step}`,
    [plane.y]: `${top}:${bottom}:${tile.stepY}`,
  };
  if (plane.color !== undefined) sides[plane.color] = ":";
  return `${node === undefined ? "" : queryOf(node, { ...plane.indices, ...sides })}&sample=${sampleOf(node)}`;
}

/** Return from how many chunks a tile is made at most: 64 MiB of them, but some thousand if they are small. */
function sampleOf(node: ArrayNode | undefined): number {
  const chunk = (node?.grid.chunks ?? [64, 64]).reduce((product, length) => product * length, node?.itemsize ?? 8);
  return Math.min(4096, Math.max(4, Math.floor(2 ** 26 / Math.max(1, chunk))));
}

/** Return the distance in a tile's elements between neighbours along x, y and colour. */
export function stridesOf(plane: Plane, shape: number[]): { x: number; y: number; color: number } {
  const axes = [plane.x, plane.y, ...(plane.color === undefined ? [] : [plane.color])].sort((a, b) => a - b);
  const strides: Record<number, number> = {};
  let stride = 1;
  for (let at = axes.length - 1; at >= 0; at--) {
    strides[axes[at] ?? 0] = stride;
    stride *= shape[at] ?? 1;
  }
  return { x: strides[plane.x] ?? 1, y: strides[plane.y] ?? 1, color: plane.color === undefined ? 0 : (strides[plane.color] ?? 1) };
}
