/** What the page shows, as the fragment of its URL: `#/path/of/node?i0=3&x=2`. The fragment is never sent to the server. */

type Range = [number, number];

export interface State {
  path: string;
  /** Index along each axis that is neither x nor y. */
  indices: Record<number, number>;
  x?: number;
  y?: number;
  view?: string;
  map?: string;
  /** How limits of colours follow from the values (`LIMITS`), where they are not given. */
  limits?: string;
  low?: number;
  high?: number;
  /** How numbers between the limits become colours (`NORMS`). */
  norm?: string;
  /** Part of complex numbers (`PARTS`). */
  part?: string;
  /** First element and elements per pixel of the plane that is shown: x, y, size of an element in pixels. */
  box?: [number, number, number];
  /** Elements of the line that are shown: the first, and the first after them. */
  span?: Range;
  grid?: boolean;
  coast?: boolean;
  /** Element of the plane whose series is shown: index along x and y. */
  at?: Range;
  /** Axis of the series. */
  along?: number;
  /** Channels that are shown, and the limits of each where they are given. */
  channels?: number[];
  windows: Record<number, Range>;
  /** Path of the labels over the image. */
  labels?: string;
  /** How values of lines and points are joined (`SHAPES`). */
  shape?: string;
  /** Scales of the axes of lines and points (`SCALES`). */
  scalex?: string;
  scaley?: string;
  /** Edges of the axis of values of a line, where they are given. */
  least?: number;
  most?: number;
  /** Whether errors are drawn, where there are any. */
  errors?: boolean;
  /** Whether lines cross the plot at the marks of its axes. */
  guides?: boolean;
  /** Paths of arrays whose lines are drawn too. */
  also?: string[];
  /** What points are drawn against, and what gives them colours: see `Scatter`. */
  against?: string;
  tint?: string;
  /** Edges of what is shown of points: the first and last x, the first and last y. */
  domain?: [number, number, number, number];
  /** Whether the axes of a picture run the other way. */
  flipx?: boolean;
  flipy?: boolean;
  /** Whether elements of a picture are stretched to fill its room. */
  fill?: boolean;
  /** Whether the first part of a colour is blue. */
  bgr?: boolean;
  /** How numbers are written in tables (`NOTATIONS`). */
  notation?: string;
  /** How a surface is turned: about the axis upwards, and to the front, in degrees. */
  turn?: Range;
}

const WORDS = ["view", "map", "limits", "norm", "part", "labels", "shape", "scalex", "scaley", "against", "tint", "notation"] as const;
const INTEGERS = ["x", "y", "along"] as const;
const NUMBERS = ["low", "high", "least", "most"] as const;
const FLAGS = ["grid", "coast", "errors", "guides", "flipx", "flipy", "fill", "bgr"] as const;

const isOneOf = <T extends string>(names: readonly T[], name: string): name is T => (names as readonly string[]).includes(name);

/** Make the state of a node that is shown for the first time. */
export function stateOf(path: string): State {
  return { path, indices: {}, windows: {} };
}

/** Read a state from the fragment of a URL; what is not understood is left out. */
export function parseState(hash: string): State {
  const [place = "", query = ""] = splitOnce(hash.replace(/^#/, ""), "?");
  const segments = place.split("/").filter((segment) => segment !== "");
  const state = stateOf(segments.map(decoded).join("/"));
  for (const [name, text] of new URLSearchParams(query)) readMember(state, name, text);
  return state;
}

function readMember(state: State, name: string, text: string): void {
  const value = text === "" ? NaN : Number(text);
  const numbers = text.split(",").map((part) => (part === "" ? NaN : Number(part)));
  const areFinite = numbers.every(Number.isFinite);
  const axis = /^([iw])(\d+)$/.exec(name);
  if (axis?.[1] === "i") {
    if (Number.isInteger(value)) state.indices[Number(axis[2])] = value;
  } else if (axis?.[1] === "w") {
    if (areFinite && numbers.length === 2) state.windows[Number(axis[2])] = numbers as Range;
  } else if (isOneOf(WORDS, name)) state[name] = text;
  else if (isOneOf(INTEGERS, name)) {
    if (Number.isInteger(value)) state[name] = value;
  } else if (isOneOf(NUMBERS, name)) {
    if (Number.isFinite(value)) state[name] = value;
  } else if (isOneOf(FLAGS, name)) state[name] = text === "1";
  else if (name === "channels") state.channels = numbers.filter(Number.isInteger);
  else if (name === "also") state.also = [...(state.also ?? []), text];
  else if (name === "domain" && areFinite && numbers.length === 4) state.domain = numbers as [number, number, number, number];
  else if (name === "turn" && areFinite && numbers.length === 2) state.turn = numbers as Range;
  else if (name === "at" && areFinite && numbers.length === 2) state.at = numbers as Range;
  else if (name === "span" && areFinite && numbers.length === 2 && (numbers[0] ?? 0) < (numbers[1] ?? 0)) state.span = numbers as Range;
  else if (name === "box" && areFinite && numbers.length === 3 && (numbers[2] ?? 0) > 0) state.box = numbers as [number, number, number];
}

/** Write a state as the fragment of a URL. */
export function dumpState(state: State): string {
  const query: [string, string][] = Object.entries(state.indices).map(([axis, index]) => [`i${axis}`, String(index)]);
  for (const name of [...INTEGERS, ...WORDS, ...NUMBERS]) {
    const value = state[name];
    if (value !== undefined) query.push([name, String(value)]);
  }
  for (const name of FLAGS) {
    const flag = state[name];
    if (flag !== undefined) query.push([name, flag ? "1" : "0"]);
  }
  for (const [channel, range] of Object.entries(state.windows)) query.push([`w${channel}`, short(range)]);
  if (state.channels !== undefined) query.push(["channels", state.channels.join(",")]);
  if (state.at !== undefined) query.push(["at", state.at.join(",")]);
  if (state.span !== undefined) query.push(["span", state.span.join(",")]);
  if (state.domain !== undefined) query.push(["domain", short(state.domain)]);
  if (state.turn !== undefined) query.push(["turn", state.turn.join(",")]);
  for (const path of state.also ?? []) query.push(["also", path]);
  if (state.box !== undefined) query.push(["box", short(state.box)]);
  const text = query.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%2F", "/")}`).join("&");
  return `#/${state.path.split("/").map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

/** Write the fragment of a node as it is shown for the first time. */
export function linkTo(path: string): string {
  return dumpState(stateOf(path));
}

function short(numbers: number[]): string {
  return numbers.map((one) => Number(one.toPrecision(8))).join(",");
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
