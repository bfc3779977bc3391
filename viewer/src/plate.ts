/** Plates of OME-Zarr: wells in rows and columns, and the fields of a well, to choose from; with pictures on request. */

import type { Api } from "./api.js";
import { el, fill } from "./dom.js";
import { linkTo } from "./state.js";

/** Plates with more wells are listed as members only. */
const MAX_WELLS = 6144;
/** Wells whose pictures are requested at once. */
const AT_ONCE = 4;
const PICTURE = 64;

export interface Plate {
  rows: string[];
  columns: string[];
  /** Paths of wells, relative to the plate, by row and column: ``wells[row][column]``; `null` where there is none. */
  wells: (string | null)[][];
}

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

function membersOf(attributes: Fields | undefined, name: string): Fields | null {
  const ome = attributes?.["ome"];
  const found = (isObject(ome) ? ome : attributes)?.[name];
  return isObject(found) ? found : null;
}

/** Return the names of rows or columns; `null` where they are malformed. */
function namesOf(value: unknown): string[] | null {
  if (!Array.isArray(value)) return null;
  const names = value.map((one: unknown) => (isObject(one) ? one["name"] : undefined));
  return names.every((name): name is string => typeof name === "string") ? names : null;
}

/** Whether a path stays below the group that names it. */
const isBelow = (path: unknown): path is string => typeof path === "string" && path !== "" && path.split("/").every((part) => part !== "" && part !== "." && part !== "..");

/** Read the plate that a group describes; `null`: it describes none, or one that is malformed or too large. */
export function plateOf(attributes: Fields | undefined): Plate | null {
  const plate = membersOf(attributes, "plate");
  const [rows, columns, listed] = [namesOf(plate?.["rows"]), namesOf(plate?.["columns"]), plate?.["wells"]];
  if (rows === null || columns === null || !Array.isArray(listed) || rows.length * columns.length > MAX_WELLS) return null;
  const wells: (string | null)[][] = rows.map(() => columns.map(() => null));
  for (const well of listed as unknown[]) {
    if (!isObject(well) || !isBelow(well["path"])) continue;
    const [row = "", column = ""] = well["path"].split("/");
    const [down, right] = [well["rowIndex"] ?? rows.indexOf(row), well["columnIndex"] ?? columns.indexOf(column)];
    const cells = typeof down === "number" ? wells[down] : undefined;
    if (cells !== undefined && typeof right === "number" && right in cells) cells[right] = well["path"];
  }
  return { rows, columns, wells };
}

/** Return the paths of the images of a well, relative to it; none where the group is not a well. */
export function fieldsOf(attributes: Fields | undefined): string[] {
  const images = membersOf(attributes, "well")?.["images"];
  return Array.isArray(images) ? images.map((one: unknown) => (isObject(one) ? one["path"] : null)).filter(isBelow) : [];
}

/** Show the plate or the well that a group is; `null`: it is neither. */
export function plateSection(api: Api, path: string, attributes: Fields | undefined): HTMLElement | null {
  const under = (one: string): string => (path === "" ? one : `${path}/${one}`);
  const plate = plateOf(attributes);
  if (plate !== null) return plateTable(api, plate, under);
  const fields = fieldsOf(attributes);
  if (fields.length === 0) return null;
  const links = fields.map((field) => el("li", {}, el("a", { href: linkTo(under(field)) }, `Field ${field}`)));
  return el("section", { class: "well" }, el("h3", {}, "Fields of the well"), el("ul", {}, ...links));
}

function plateTable(api: Api, plate: Plate, under: (path: string) => string): HTMLElement {
  const cells = new Map<string, HTMLElement>();
  const cell = (well: string | null, name: string): HTMLElement => {
    if (well === null) return el("td", { class: "quiet" }, "–");
    const link = el("a", { href: linkTo(under(well)) }, name);
    cells.set(well, link);
    return el("td", {}, link);
  };
  const head = el("thead", {}, el("tr", {}, el("td", {}), ...plate.columns.map((name) => el("th", { scope: "col" }, name))));
  const lines = plate.rows.map((row, down) =>
    el("tr", {}, el("th", { scope: "row" }, row), ...plate.columns.map((column, right) => cell(plate.wells[down]?.[right] ?? null, row + column))),
  );
  const pictures = el("button", { type: "button" }, "Pictures of the wells");
  pictures.addEventListener("click", () => {
    pictures.remove();
    void drawWells(api, cells, under);
  });
  const table = el("div", { class: "scroll", tabindex: 0 }, el("table", { class: "plate" }, head, el("tbody", {}, ...lines)));
  return el("section", {}, el("h3", {}, `Plate: ${cells.size} wells`), api.isStatic ? null : pictures, table);
}

/** Put the first field of each well into its cell, a few at a time. */
async function drawWells(api: Api, cells: Map<string, HTMLElement>, under: (path: string) => string): Promise<void> {
  const left = [...cells];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [well, link] = next;
      const source = await pictureOf(api, under(well)).catch(() => null);
      if (source !== null && link.isConnected) fill(link, el("img", { src: source, alt: link.textContent ?? "", title: link.textContent ?? "", width: PICTURE }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Return the URL of a picture of the coarsest level of a well's first field; `null` where there is none. */
async function pictureOf(api: Api, well: string): Promise<string | null> {
  const [field] = fieldsOf((await api.node(well)).attributes);
  if (field === undefined) return null;
  const image = await api.node(`${well}/${field}`);
  const level = image.kind === "group" ? image.pyramids?.[0]?.paths.at(-1) : undefined;
  return level === undefined ? null : api.url(`${image.path}/${level}`, "png", `size=${PICTURE}`);
}
