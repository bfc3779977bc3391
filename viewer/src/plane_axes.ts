/** Which axes of an array are along x and y, and which one holds colours. Pure. */

import type { ArrayNode } from "./api.js";
import type { State } from "./state.js";

/** Return the axis of red, green and blue, if the elements are bytes and the last (or first) axis has three or four. Pure. */
export function colorAxis(node: ArrayNode): number | undefined {
  const axes = node.shape.length;
  if (axes < 3 || node.numpy !== "|u1") return undefined;
  const isColor = (axis: number): boolean => node.shape[axis] === 3 || node.shape[axis] === 4;
  if (isColor(axes - 1)) return axes - 1;
  return isColor(axes - 3) && /^(c|channel|band|rgb)/i.test(node.dimensions[axes - 3] ?? "") ? axes - 3 : undefined;
}

/** Choose the axes along x and y: those of the state, else those that an image names, else the last two that are not the colours'. Pure. */
export function planeAxes(node: ArrayNode, state: State, color: number | undefined): { x: number; y: number } {
  const free = node.shape.map((_, axis) => axis).filter((axis) => axis !== color);
  const image = node.pyramid?.axes.map((axis) => axis.name) ?? [];
  const named = (name: string): number | undefined => (image.length === node.shape.length && image.includes(name) ? image.indexOf(name) : undefined);
  const chosen = (axis: number | undefined): number | undefined => (axis !== undefined && free.includes(axis) ? axis : undefined);
  let x = chosen(state.x) ?? chosen(named("x")) ?? free.at(-1) ?? 0;
  let y = chosen(state.y) ?? chosen(named("y")) ?? free.at(-2) ?? 0;
  if (x === y) {
    if (state.x !== undefined) y = free.filter((axis) => axis !== x).at(-1) ?? x;
    else x = free.filter((axis) => axis !== y).at(-1) ?? y;
  }
  return { x, y };
}
