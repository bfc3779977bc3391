/** What the page shows, as the fragment of its URL: `#/path/of/node?i0=3&x=2`. The fragment is never sent to the server. */

export interface State {
  path: string;
  /** Index along each axis that is neither x nor y. */
  indices: Record<number, number>;
  x?: number;
  y?: number;
  view?: string;
  map?: string;
  low?: number;
  high?: number;
  /** First element and elements per pixel of the plane that is shown: x, y, size of an element in pixels. */
  box?: [number, number, number];
  grid?: boolean;
}

/** Read a state from the fragment of a URL; what is not understood is left out. */
export function parseState(hash: string): State {
  const [place = "", query = ""] = splitOnce(hash.replace(/^#/, ""), "?");
  const segments = place.split("/").filter((segment) => segment !== "");
  const state: State = { path: segments.map(decoded).join("/"), indices: {} };
  for (const [name, text] of new URLSearchParams(query)) {
    const axis = /^i(\d+)$/.exec(name);
    const value = Number(text);
    if (axis !== null) {
      if (Number.isInteger(value)) state.indices[Number(axis[1])] = value;
    } else if (name === "x" || name === "y") {
      if (Number.isInteger(value)) state[name] = value;
    } else if (name === "low" || name === "high") {
      if (text !== "" && Number.isFinite(value)) state[name] = value;
    } else if (name === "view" || name === "map") state[name] = text;
    else if (name === "grid") state.grid = text === "1";
    else if (name === "box") {
      const parts = text.split(",").map(Number);
      const [left, top, size] = parts;
      if (parts.length === 3 && parts.every(Number.isFinite) && left !== undefined && top !== undefined && size !== undefined && size > 0) {
        state.box = [left, top, size];
      }
    }
  }
  return state;
}

/** Write a state as the fragment of a URL. */
export function dumpState(state: State): string {
  const query = new URLSearchParams();
  for (const [axis, index] of Object.entries(state.indices)) query.set(`i${axis}`, String(index));
  for (const name of ["x", "y", "view", "map", "low", "high"] as const) {
    const value = state[name];
    if (value !== undefined) query.set(name, String(value));
  }
  if (state.grid) query.set("grid", "1");
  if (state.box !== undefined) query.set("box", state.box.map((part) => Number(part.toPrecision(8))).join(","));
  const text = query.toString();
  return `#/${state.path.split("/").map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
