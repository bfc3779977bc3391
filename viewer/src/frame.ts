/** The frame of a plot: where the plot is in its element, and the marks of its axes. */

import { shortText } from "./elements.js";
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
  /** Whether lines cross the plot at the marks. */
  hasGuides: boolean;
  label: string;
  /** Facts about what is drawn, which become `data-…` of the canvas. */
  facts: Record<string, string>;
  onCanvas: (canvas: HTMLCanvasElement) => void;
}

/** Return the size of the plot within an element, in pixels; `null`: the element is not shown. */
export function roomOf(element: HTMLElement): { width: number; height: number } | null {
  if (element.clientWidth === 0) return null;
  return { width: Math.max(1, element.clientWidth - MARGIN.left - MARGIN.right), height: Math.max(1, element.clientHeight - MARGIN.top - MARGIN.bottom) };
}

/** Return the marks of an axis of values, which rises over a height in pixels. */
export function valueMarks(scaling: Scaling, height: number): Mark[] {
  return scaling.ticks(Math.max(2, Math.floor(height / 36))).map((value) => ({ at: (1 - scaling.share(value)) * height, text: shortText(value) }));
}

/** A rectangle that a person draws with Shift: the first corner and the last, in pixels of the plot. */
export interface Selection {
  from: [number, number];
  to: [number, number];
}
