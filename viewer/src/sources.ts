/** Where a plane is read from: an array, the coarser levels of its pyramid, and labels over it. */

import type { Api, ArrayNode } from "./api.js";
import type { Plane, Source } from "./plane.js";

/** Return the array and the coarser levels of its pyramid, which have the same elements along all other axes. */
export async function readSources(api: Api, node: ArrayNode, { x, y }: { x: number; y: number }): Promise<Source[]> {
  const own: Source = { node, factorX: 1, factorY: 1 };
  const { pyramid } = node;
  if (pyramid === undefined) return [own];
  const paths = pyramid.paths.map((path) => below(pyramid.group ?? "", path));
  const coarser = await Promise.all(paths.slice(paths.indexOf(node.path) + 1).map((path) => readLevel(api, path)));
  const found = coarser.filter((level): level is ArrayNode => {
    if (level === null || level.shape.length !== node.shape.length || level.numpy !== node.numpy) return false;
    return level.shape.every((length, axis) => axis === x || axis === y || length === node.shape[axis]);
  });
  return [own, ...found.map((level) => sourceOf(level, node, { x, y }, { x, y }))];
}

/** Return the plane of labels over a plane of an image; `null` where the labels are no image with these axes. */
export async function readLabelSources(api: Api, path: string, image: ArrayNode, plane: Plane): Promise<Plane | null> {
  const group = await api.node(path);
  const pyramid = group.kind === "group" ? group.pyramids?.[0] : undefined;
  if (pyramid === undefined) return null;
  const levels = (await Promise.all(pyramid.paths.map((one) => readLevel(api, below(path, one))))).filter((level) => level !== null);
  const names = pyramid.axes.map((axis) => axis.name);
  const axisOf = (axis: number): number => names.indexOf(image.pyramid?.axes[axis]?.name ?? "");
  const own = { x: axisOf(plane.x), y: axisOf(plane.y) };
  const [finest] = levels;
  if (finest === undefined || own.x < 0 || own.y < 0 || names.length !== finest.shape.length) return null;
  const indices: Record<number, number> = {};
  image.shape.forEach((_, axis) => {
    const to = axisOf(axis);
    if (to >= 0) indices[to] = Math.min((finest.shape[to] ?? 1) - 1, plane.indices[axis] ?? 0);
  });
  return { ...own, indices, sources: levels.map((level) => sourceOf(level, image, own, plane)) };
}

/** Return an array as a source, with how many elements of the finest level are along one of its own. */
function sourceOf(level: ArrayNode, finest: ArrayNode, own: { x: number; y: number }, of: { x: number; y: number }): Source {
  const factor = (axis: number, to: number): number => Math.max(1, Math.round((finest.shape[to] ?? 1) / (level.shape[axis] ?? 1)));
  return { node: level, factorX: factor(own.x, of.x), factorY: factor(own.y, of.y) };
}

async function readLevel(api: Api, path: string): Promise<ArrayNode | null> {
  const node = await api.node(path).catch(() => null);
  return node?.kind === "array" ? node : null;
}

function below(group: string, path: string): string {
  return group === "" ? path : `${group}/${path}`;
}
