/** What is drawn of a plot, in pixels: its axes, what is in the plot, and what lies over it. */

import { dateMarks, markTexts } from "./elements.js";
import type { Texels } from "./layer.js";
import type { Lines } from "./overlay.js";
import type { Scaling } from "./scales.js";

/** Space beside a plot, in pixels. */
export const MARGIN = { left: 78, bottom: 40, top: 8, right: 8 };

/** A number along an axis: its text, and where it is, in pixels from the left or the top of the plot. */
export interface Mark {
  at: number;
  text: string;
}

export interface Axis {
  title: string;
  marks: Mark[];
}

export interface Frame {
  /** Size of the plot in pixels. */
  width: number;
  height: number;
  /** Where its axes end, in pixels: `width` and `height`, or less, where what is shown is smaller. */
  right: number;
  bottom: number;
  x: Axis;
  y: Axis;
  /** Whether lines cross the plot at the marks: below what is drawn, or over it. */
  guides: "below" | "over" | null;
  /** The path of the edge of a plane, below what is drawn, so that it is seen where nothing is. */
  edge?: string;
  label: string;
  /** Facts about what is drawn, which become `data-…` of the canvas. */
  facts: Record<string, string>;
  onCanvas: (canvas: HTMLCanvasElement) => void;
}

/** A picture in the plot: edges in pixels from the left and the top, and the shares of the picture that are there. */
export interface Patch {
  texels: Texels;
  left: number;
  right: number;
  top: number;
  bottom: number;
  /** Where the edges are in the picture: 0 at its first column and row, 1 at its end. */
  share: { left: number; right: number; top: number; bottom: number };
  /** Layers are drawn one over the other, the first below. */
  layer: number;
  /** A patch covers those of its layer with a larger number, also where it is transparent. */
  behind: number;
  /** Its light is added to what is below. */
  isAdded: boolean;
  isSmooth: boolean;
}

/** Where places are drawn: each is stretched, then moved. */
export interface Moved {
  left: number;
  top: number;
  scaleX: number;
  scaleY: number;
}

/** Places in pixels from the left and the top of the plot; NaN parts lines. */
export interface Stroke {
  x: Float64Array;
  y: Float64Array;
  /** Absent: the places are where they are drawn. */
  moved?: Moved;
  color: string;
  width: number;
  opacity: number;
  hasLine: boolean;
  /** Side of a point at each place, in pixels; 0: there are none. */
  side: number;
  /** Colours of the points: shares of a colour map, and the colour of what has no share; absent: they are of the colour of the line. */
  tint?: { shares: Float64Array; map: string; none: string } | undefined;
}

/** A rectangle about an element, in pixels. */
export interface Marked {
  x: number;
  y: number;
  width: number;
  height: number;
  color: string;
}

/** What lies over a plot. */
export interface Over {
  lines?: Lines[];
  /** Coast lines of a plane: a path in elements, and where it is; negative scales: it runs the other way. */
  coast?: { path: string; place: Moved; columns: number; rows: number } | null;
  marks?: Marked[];
  /** Lines from the top to the bottom, by their class in the style of the page. */
  rules?: { at: number; kind: "marked" | "cursor" }[];
  /** Names of curves, in their colours. */
  names?: { text: string; color: string }[];
  selection?: Selection | null;
}

export interface Look {
  frame: Frame;
  patches: Patch[];
  strokes: Stroke[];
  over: Over;
}

/** Return the size of the plot within an element, in pixels; `null`: the element is not shown. */
export function roomOf(element: HTMLElement): { width: number; height: number } | null {
  if (element.clientWidth === 0) return null;
  return { width: Math.max(1, element.clientWidth - MARGIN.left - MARGIN.right), height: Math.max(1, element.clientHeight - MARGIN.top - MARGIN.bottom) };
}

/** Return the marks of an axis of values, which runs to the right, or rises, over a length in pixels. `dtype`: NumPy's name of their type. */
export function valueMarks(scaling: Scaling, length: number, isRising: boolean, dtype = ""): Mark[] {
  const count = Math.max(2, Math.floor(length / (isRising ? 36 : 90)));
  const at = (value: number): number => (isRising ? 1 - scaling.share(value) : scaling.share(value)) * length;
  const dates = dateMarks(dtype, scaling.value(0), scaling.value(1), count);
  if (dates !== null) return dates.map(({ value, text }) => ({ at: at(value), text }));
  const values = scaling.ticks(count);
  return markTexts(values).map((text, one) => ({ at: at(values[one] ?? NaN), text }));
}

/** A rectangle that a person draws with Shift: the first corner and the last, in pixels of the plot. */
export interface Selection {
  from: [number, number];
  to: [number, number];
}
