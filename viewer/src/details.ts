/** What a node says about itself: facts, attributes, documents as stored. */

import type { ArrayNode, ZarrNode } from "./api.js";
import { el } from "./dom.js";
import { bytesText } from "./elements.js";

/** List the facts of an array: label and text. Pure. */
export function factsOf(node: ArrayNode): [string, string][] {
  const dimensions = node.shape.map((length, axis) => `${node.dimensions[axis] ?? `dim_${axis}`}: ${length}`).join(", ");
  const facts: [string, string][] = [
    ["Dimensions", dimensions || "none: one element"],
    ["Data type", node.dtype],
    ["Size", `${bytesText(node.nbytes)} decoded`],
  ];
  if (node.grid.chunks !== null) {
    facts.push(["Chunk shape", node.grid.chunks.join(" × ") || "scalar"], ["Chunks", node.nchunks.join(" × ") || "1"]);
  }
  if (node.grid.shards !== null) facts.push(["Shard shape", node.grid.shards.join(" × ")]);
  facts.push(["Codecs", node.stages.join(" → ")], ["Fill value", node.fill_value ?? "none"]);
  if (node.label !== null) facts.push(["Name", node.label]);
  if (node.units !== null) facts.push(["Units", node.units]);
  if (node.packing !== null) {
    const { scale, offset, missing } = node.packing;
    const gone = missing.length > 0 ? `; missing: ${missing.map((one) => one ?? "NaN").join(", ")}` : "";
    facts.push(["Decoded by", `stored × ${scale} + ${offset}${gone}`]);
  }
  facts.push(["Zarr format", String(node.zarr_format ?? "")]);
  return facts;
}

/** Make the sections with attributes and documents. */
export function details(node: ZarrNode): HTMLElement[] {
  const attributes = Object.entries(node.attributes ?? {});
  const table = el(
    "table",
    { class: "attributes" },
    el("tbody", {}, ...attributes.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, valueOf(value))))),
  );
  const documents = Object.entries(node.documents).map(([name, text]) =>
    el("details", {}, el("summary", {}, `${name}, as stored`), el("pre", { tabindex: 0 }, text)),
  );
  return [
    el("h3", {}, "Attributes"),
    attributes.length > 0 ? table : el("p", { class: "quiet" }, "none"),
    el("h3", {}, "Metadata"),
    ...documents,
  ];
}

function valueOf(value: unknown): HTMLElement {
  if (typeof value === "string") return el("span", {}, value);
  const text = JSON.stringify(value, null, 2);
  return text.length < 80 ? el("code", {}, JSON.stringify(value)) : el("pre", {}, text);
}
