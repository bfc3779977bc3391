/** Texts to copy that open a node in other programs, and links to what is shown as files. */

import { type Api, type ArrayNode, encodePath, type ZarrNode } from "./api.js";
import { el, fill } from "./dom.js";
import { planeAxes } from "./plane_axes.js";
import type { State } from "./state.js";

/** List programs and the text that opens a node in each; `url` is that of the node, `above` that of its group. Pure. */
export function openers(node: ZarrNode, url: string, above: string): [string, string][] {
  const found: [string, string][] = [
    ["URL", url],
    ["Python, tessarr", `import tessarr\nnode = tessarr.open("${url}", mode="r")`],
    ["Python, zarr-python", `import zarr\nnode = zarr.open("${url}", mode="r")`],
    ["Python, xarray", `import xarray\ndata = xarray.open_zarr("${node.kind === "group" ? url : above}")`],
    ["Terminal", `tessarr info "${url}"`],
  ];
  if (node.kind === "group" && (node.pyramids ?? []).length === 0) return found;
  return [...found, ["Neuroglancer, source of a layer", `${node.zarr_format === 2 ? "zarr2" : "zarr3"}://${url}`]];
}

/** Make the section with these texts. They hold the secret of the URL, so that they are in the page only while it is open. */
export function elsewhere(api: Api, node: ZarrNode): HTMLElement {
  const list = el("div");
  const section = el("details", { class: "elsewhere" }, el("summary", {}, "Open in Python and other programs"), list);
  section.addEventListener("toggle", () => {
    const url = api.place(node.path);
    const texts = openers(node, url, url.slice(0, url.lastIndexOf("/")));
    fill(list, ...(section.open ? texts.map(([name, text]) => copied(name, text)) : []));
  });
  return section;
}

function copied(name: string, text: string): HTMLElement {
  const button = el("button", { type: "button", "aria-label": `Copy: ${name}` }, "Copy");
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(
      () => (button.textContent = "Copied"),
      () => (button.textContent = "Select the text and copy it"),
    );
  });
  return el("div", {}, el("div", { class: "quiet" }, name), el("div", { class: "copied" }, el("pre", { tabindex: 0 }, text), button));
}

/** Make links to the elements that a state shows, as files. */
export function downloads(api: Api, node: ArrayNode, state: State): HTMLElement {
  const { x, y } = planeAxes(node, state, undefined);
  const isLine = state.view === "line" || state.view === "scatter" || node.shape.length === 1;
  const picked = node.shape.map((_, axis) => axis).filter((axis) => axis !== x && (axis !== y || isLine));
  const span = isLine && state.span !== undefined ? [`${x}=${state.span.join(":")}`] : [];
  const query = [...picked.map((axis) => `${axis}=${state.indices[axis] ?? 0}`), ...span].join("&");
  const kinds = node.shape.length - picked.length === 2 && node.is_raw ? ["png", "npy", "csv", "json"] : ["npy", "csv", "json"];
  const name = `${(node.path === "" ? node.name : encodePath(node.path)).split("/").at(-1) || "array"}`;
  const links = kinds.map((kind) => el("a", { href: api.url(node.path, kind, query), download: `${name}.${kind}` }, kind.toUpperCase()));
  return el("p", { class: "quiet downloads" }, "What is shown, as a file: ", ...links.flatMap((link, at) => (at === 0 ? [link] : [" · ", link])));
}
