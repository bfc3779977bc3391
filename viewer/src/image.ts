/** Images of OME-Zarr: the channels of an image, how they are drawn, and the labels over it. Pure, but for reading nodes. */

import type { Api, ArrayNode, GroupNode } from "./api.js";
import { rgbOf } from "./colors.js";

export interface Channel {
  name: string;
  color: [number, number, number];
  /** Values of the first and last colour; `null`: they follow from the values. */
  window: [number, number] | null;
  isShown: boolean;
}

/** Channels that are shown at first where the image does not say which. */
const SHOWN_AT_FIRST = 4;
const COLORS = ["00ff00", "ff00ff", "00a0ff", "ffb000", "ff3030", "ffffff"];

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Return the axis of channels of a level of an image, if it has more than one. */
export function channelAxis(node: ArrayNode): number | undefined {
  const axes = node.pyramid?.axes ?? [];
  if (axes.length !== node.shape.length) return undefined;
  const axis = axes.findIndex((one) => one.type === "channel" || one.name === "c");
  return axis >= 0 && (node.shape[axis] ?? 0) > 1 ? axis : undefined;
}

/** Read the channels of an image from the attributes of its group (`omero`), `count` of them. */
export function channelsOf(attributes: Json, count: number): Channel[] {
  const inner = isObject(attributes["ome"]) ? attributes["ome"] : attributes;
  const omero = isObject(inner["omero"]) ? inner["omero"] : {};
  const given = Array.isArray(omero["channels"]) ? (omero["channels"] as unknown[]) : [];
  return Array.from({ length: count }, (_, at): Channel => {
    const one = isObject(given[at]) ? given[at] : {};
    const window = isObject(one["window"]) ? one["window"] : {};
    const [low, high] = [window["start"], window["end"]];
    return {
      name: typeof one["label"] === "string" && one["label"] !== "" ? one["label"] : `Channel ${at}`,
      color: rgbOf(typeof one["color"] === "string" ? one["color"] : (COLORS[at % COLORS.length] ?? "ffffff")),
      window: typeof low === "number" && typeof high === "number" && high > low ? [low, high] : null,
      isShown: typeof one["active"] === "boolean" ? one["active"] : at < SHOWN_AT_FIRST,
    };
  });
}

/** List the paths of the groups of labels over an image. */
export async function labelPaths(api: Api, group: GroupNode): Promise<string[]> {
  if (!group.members?.some((one) => one.name === "labels" && one.kind === "group")) return [];
  const path = group.path === "" ? "labels" : `${group.path}/labels`;
  const labels = await api.node(path);
  if (labels.kind !== "group") return [];
  return (labels.members ?? []).filter((one) => one.kind === "group").map((one) => `${path}/${one.name}`);
}
