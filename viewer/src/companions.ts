/** Arrays beside an array: its errors, and those that can be drawn with it or against it. */

import type { Api, ArrayNode, Member } from "./api.js";
import { isKnown } from "./elements.js";

/** What follows the name of an array in that of its errors. */
const ENDINGS = ["errors", "error", "err", "standard_error", "stderr", "uncertainty", "std"];
const NAME_OF_ERRORS = new RegExp(`(^|_)(${ENDINGS.join("|")})$`, "i");
/** Names of the attribute `ancillary_variables` that are looked at. */
const MAX_ANCILLARY = 8;

export interface Companions {
  /** How far the true values may be from those of the array: an array of the same shape; `null`: there is none. */
  errors: ArrayNode | null;
  /** Arrays of numbers in the same group. */
  siblings: { path: string; shape: number[] }[];
}

/** Read what is beside an array in its group, and above it the coordinates. */
export async function readCompanions(api: Api, node: ArrayNode): Promise<Companions> {
  if (node.path === "") return { errors: null, siblings: [] };
  const above = node.path.slice(0, Math.max(0, node.path.lastIndexOf("/")));
  const group = await api.node(above).catch(() => null);
  if (group?.kind !== "group") return { errors: null, siblings: [] };
  const members = group.members ?? [];
  const pathOf = (name: string): string => (above === "" ? name : `${above}/${name}`);
  const named = [...ancillaryNames(node), ...errorNames(node, group.attributes?.["signal"], members)];
  let errors: ArrayNode | null = null;
  for (const name of named) {
    const one = await readArray(api, pathOf(name));
    if (one === null || one.shape.join() !== node.shape.join()) continue;
    if (isStandardError(name, one.attributes ?? {})) {
      errors = one;
      break;
    }
  }
  const siblings = members.filter((one) => one.kind === "array" && /^(bool|u?int|float)/.test(one.dtype ?? "") && pathOf(one.name) !== node.path);
  return { errors, siblings: siblings.map((one) => ({ path: pathOf(one.name), shape: one.shape ?? [] })) };
}

/** Return the description of an array of numbers; `null`: there is none, or its elements are none that are drawn. */
export async function readArray(api: Api, path: string): Promise<ArrayNode | null> {
  const found = await api.node(path).catch(() => null);
  return found?.kind === "array" && found.is_raw && isKnown(found.numpy) ? found : null;
}

/** Return the names of CF's `ancillary_variables`, which belong to the group of the array. Pure. */
export function ancillaryNames(node: ArrayNode): string[] {
  const text = node.attributes?.["ancillary_variables"];
  return typeof text === "string" ? text.split(/\s+/).filter((name) => name !== "" && !name.includes("/")).slice(0, MAX_ANCILLARY) : [];
}

/** Return the names of members that hold errors by their name: `air_errors` of `air`, `errors` of the signal of NeXus. Pure. */
export function errorNames(node: ArrayNode, signal: unknown, members: Member[]): string[] {
  const wanted = new Set(ENDINGS.map((ending) => `${node.name}_${ending}`.toLowerCase()));
  if (signal === node.name) wanted.add("errors");
  return members.filter((one) => one.kind === "array" && wanted.has(one.name.toLowerCase()) && one.shape?.join() === node.shape.join()).map((one) => one.name);
}

/** Whether an array holds errors: by the modifier of its standard name (CF, appendix C), else by its name. Pure. */
export function isStandardError(name: string, attributes: Record<string, unknown>): boolean {
  const standard = attributes["standard_name"];
  if (typeof standard === "string" && /\s/.test(standard.trim())) return /\sstandard_error$/.test(standard.trim());
  return NAME_OF_ERRORS.test(name);
}

/** Return the siblings that have an element for each along an axis: those of the same shape, and lines of its length. Pure. */
export function fitting(node: ArrayNode, along: number, { siblings }: Companions): string[] {
  const length = node.shape[along];
  return siblings.filter(({ shape }) => shape.join() === node.shape.join() || (shape.length === 1 && shape[0] === length)).map(({ path }) => path);
}
