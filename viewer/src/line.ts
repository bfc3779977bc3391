/** Lines of numbers on a canvas: per pixel the range of the values there, so that no peak is lost; pan and zoom along the axis. */

import { drawBar, drawSelection, drawTick, drawTitles, drawValueAxis, type Frame, frameOf, MARGIN, pixelOf, type Selection } from "./axis_drawing.js";
import { el, onLook } from "./dom.js";
import { Drags } from "./drags.js";
import { edgesOf, type Scaling, scalingOf } from "./scales.js";
import type { Tick } from "./ticks.js";

/** The elements from the first index to before the second. */
export type Span = [number, number];

/** Values at every `step`-th element from `first` on. */
export interface Samples {
  values: Float64Array;
  first: number;
  step: number;
}

export interface Curve {
  name: string;
  samples: Samples;
  /** How far each value may be from the true one; `null`: that is not known. */
  errors: Float64Array | null;
}

/** How values between two elements are drawn. */
export const SHAPES: Record<string, string> = { line: "lines", both: "lines and points", points: "points", steps: "steps" };

export interface LineStyle {
  /** One of `SHAPES`. */
  shape: string;
  /** Scale of the values, one of `SCALES`. */
  scale: string;
  /** Edges of the axis of values; `null`: they follow from what is in sight. */
  limits: [number, number] | null;
  hasErrors: boolean;
  hasGuides: boolean;
}

export interface LineOptions {
  /** The line of the array first; it has the cursor. */
  curves: Curve[];
  style: LineStyle;
  /** Number of elements along the axis. */
  length: number;
  /** What is shown; `null`: everything. */
  span: Span | null;
  /** Index that is marked. */
  mark: number | null;
  title: string;
  titleY: string;
  ticks: (from: number, to: number, count: number) => Tick[];
  onCursor: (index: number | null) => void;
  onPick: (index: number) => void;
  /** What is shown changed; `null`: everything. */
  onSpan: (span: Span | null) => void;
}

/** Colours of further lines: custom properties of the page's style. */
const COLORS = ["--accent", "--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5"];
const LEAST = 4;

/** Return what is shown after zooming about an element, or after moving by elements; `null`: everything. Pure. */
export function spanAfter([from, to]: Span, length: number, change: { factor?: number; at?: number; by?: number }): Span | null {
  const size = Math.max(Math.min(LEAST, length), (to - from) / (change.factor ?? 1));
  if (size >= length) return null;
  const share = change.at === undefined ? 0.5 : (change.at - from) / (to - from);
  const start = Math.min(length - size, Math.max(0, from + (change.by ?? 0) + share * (to - from - size)));
  return [start, start + size];
}

/** Return the least and the largest finite value of each of `columns` parts: NaN for a part without one. Pure. */
export function ranges(values: Float64Array, columns: number): { low: Float64Array; high: Float64Array } {
  const low = new Float64Array(columns).fill(NaN);
  const high = new Float64Array(columns).fill(NaN);
  for (let at = 0; at < values.length; at++) {
    const value = values[at] ?? NaN;
    if (!Number.isFinite(value)) continue;
    const column = Math.min(columns - 1, Math.floor((at / values.length) * columns));
    if (!((low[column] ?? NaN) <= value)) low[column] = value;
    if (!((high[column] ?? NaN) >= value)) high[column] = value;
  }
  return { low, high };
}

export class Line {
  readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "line", class: "plot" });
  private readonly ignore: () => void;
  private curves: Curve[];
  private style: LineStyle;
  private span: Span | null;
  private cursor: number | null = null;
  private readonly drags = new Drags(this.canvas, {
    grab: () => {
      const [from, to] = this.shown();
      return (right) => this.show(spanAfter([from, to], this.options.length, { by: (-right / this.width()) * (to - from) }));
    },
    hover: ([x]) => this.setCursor(this.indexAt(x)),
    click: ([x]) => {
      const index = this.indexAt(x);
      if (index !== null) this.options.onPick(index);
    },
    take: (selection) => this.take(selection),
    draw: () => this.draw(),
  });
  private mark: number | null;

  constructor(private readonly options: LineOptions) {
    ({ curves: this.curves, style: this.style, span: this.span, mark: this.mark } = options);
    this.ignore = onLook(this.canvas, () => this.draw());
    this.listen();
  }

  close(): void {
    this.ignore();
  }

  setMark(index: number | null): void {
    this.mark = index;
    this.draw();
  }

  setCurves(curves: Curve[]): void {
    this.curves = curves;
    this.draw();
  }

  setStyle(style: LineStyle): void {
    this.style = style;
    this.draw();
  }

  /** Zoom by a factor about an element, or the middle. */
  zoom(factor: number, at?: number): void {
    this.show(spanAfter(this.shown(), this.options.length, at === undefined ? { factor } : { factor, at }));
  }

  /** Show everything. */
  fit(): void {
    this.show(null);
  }

  private show(span: Span | null): void {
    this.span = span;
    this.options.onSpan(span);
    this.draw();
  }

  private shown(): Span {
    return this.span ?? [0, this.options.length];
  }

  private setCursor(index: number | null): void {
    this.cursor = index;
    this.options.onCursor(index);
    this.draw();
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointerleave", () => this.setCursor(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 300), this.placeAt(pixelOf(event, canvas)[0]));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show the elements in the part that was drawn. */
  private take({ from, to }: Selection): void {
    const [first, last] = this.shown();
    const [left, right] = [from[0], to[0]].sort((a, b) => a - b).map((pixel) => first + ((pixel - MARGIN.left) / this.width()) * (last - first)) as [number, number];
    const span: Span = [Math.max(0, left), Math.min(this.options.length, right)];
    if (span[1] - span[0] >= Math.min(LEAST, this.options.length)) this.show(span);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = this.shown();
    const pixel = Math.max(1, Math.round((to - from) / this.width()));
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[event.key];
    if (step !== undefined) {
      const at = this.cursor === null ? Math.ceil(from) : this.cursor + step * (event.shiftKey ? 10 : 1) * (Math.abs(step) > 1 ? pixel : 1);
      this.setCursor(Math.min(this.options.length - 1, Math.max(0, at)));
    } else if (event.key === "Enter" && this.cursor !== null) this.options.onPick(this.cursor);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5, this.cursor ?? undefined);
    else if (event.key === "-") this.zoom(1 / 1.5, this.cursor ?? undefined);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** Return where a pixel of the canvas is, in elements from the first of the axis. */
  private placeAt(x: number): number {
    const [from, to] = this.shown();
    return from + ((x - MARGIN.left) / this.width()) * (to - from);
  }

  private indexAt(x: number): number | null {
    const [from, to] = this.shown();
    const place = this.placeAt(x);
    return place >= from && place < to ? Math.floor(place) : null;
  }

  private width(): number {
    return Math.max(1, this.canvas.clientWidth - MARGIN.left - MARGIN.right);
  }

  private draw(): void {
    const found = frameOf(this.canvas);
    if (found === null) return;
    const { context, frame } = found;
    const [from, to] = this.shown();
    const parts = this.curves.map((curve) => visiblePart(curve, [from, to], this.style.hasErrors));
    const edges = this.style.limits ?? edgesOf(parts.flatMap(({ values, bars }) => (bars === null ? [values] : [values, bars.below, bars.above])), this.style.scale);
    const scaling = scalingOf(this.style.scale, edges);
    const x = (place: number): number => frame.left + ((place - from) / (to - from)) * frame.width;
    for (const { at, text } of this.options.ticks(from, to, Math.floor(frame.width / 90))) {
      if (at + 0.5 >= from && at + 0.5 <= to) drawTick(context, frame, x(at + 0.5), text, this.style.hasGuides);
    }
    drawValueAxis(context, frame, scaling, this.style.hasGuides);
    drawTitles(context, frame, this.options.title, this.options.titleY);
    context.save();
    context.beginPath();
    context.rect(frame.left, 0, frame.width, frame.top + frame.height + 1);
    context.clip();
    parts.forEach((part, at) => this.drawPart(context, frame, scaling, part, x, colorOf(this.canvas, at)));
    this.drawLegend(context, frame);
    const style = getComputedStyle(this.canvas);
    if (this.mark !== null) {
      context.fillStyle = style.getPropertyValue("--error") || "#c00";
      context.fillRect(x(this.mark + 0.5) - 0.5, frame.top, 1.5, frame.height);
    }
    context.fillStyle = style.color;
    if (this.cursor !== null) context.fillRect(x(this.cursor + 0.5), frame.top, 1, frame.height);
    context.restore();
    if (this.drags.selection !== null) {
      const [top, bottom] = [frame.top, frame.top + frame.height]; // over the whole height
      drawSelection(context, { from: [this.drags.selection.from[0], top], to: [this.drags.selection.to[0], bottom] });
    }
    this.canvas.dataset["frame"] = [frame.left, frame.top, frame.width, frame.height, from, to, ...edges].join(",");
  }

  private drawPart(context: CanvasRenderingContext2D, frame: Frame, scaling: Scaling, part: Part, x: (place: number) => number, color: string): void {
    const { values, bars, first, step } = part;
    const y = (value: number): number => frame.top + (1 - scaling.share(value)) * frame.height;
    const place = (at: number): number => x(first + (at + 0.5) * step);
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = 1;
    if (bars !== null) drawErrors(context, bars, place, y, frame);
    context.lineWidth = 1.5;
    drawValues(context, this.style.shape, values, place, y, frame.width);
  }

  /** Name the lines, where there are more than one. */
  private drawLegend(context: CanvasRenderingContext2D, { left, top, width }: Frame): void {
    if (this.curves.length < 2) return;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    this.curves.forEach(({ name }, at) => {
      const y = top + 8 + 15 * at;
      context.fillStyle = colorOf(this.canvas, at);
      context.fillRect(left + width - 18, y - 1, 14, 3);
      context.fillStyle = getComputedStyle(this.canvas).color;
      context.fillText(name, left + width - 24, y, width / 3);
    });
  }
}

function colorOf(canvas: HTMLCanvasElement, at: number): string {
  return getComputedStyle(canvas).getPropertyValue(COLORS[at % COLORS.length] ?? "") || "#36c";
}

/** The values of a curve that are in sight, and both ends of the bars of their errors. */
interface Part {
  values: Float64Array;
  bars: { below: Float64Array; above: Float64Array } | null;
  /** Position of the first value, in elements. */
  first: number;
  step: number;
}

/** Return the values that are in sight, with one beyond each end. */
function visiblePart({ samples: { values: all, first, step }, errors }: Curve, [from, to]: Span, hasErrors: boolean): Part {
  const start = Math.max(0, Math.floor((from - first) / step) - 1);
  const values = all.subarray(start, Math.max(start, Math.ceil((to - first) / step) + 1));
  const error = (at: number): number => errors?.[start + at] ?? NaN;
  const bars = hasErrors && errors !== null ? { below: values.map((value, at) => value - error(at)), above: values.map((value, at) => value + error(at)) } : null;
  return { values, bars, first: first + start * step, step };
}

/** Draw errors: a bar at each value, or a band where there are more values than pixels. */
function drawErrors(context: CanvasRenderingContext2D, { below, above }: { below: Float64Array; above: Float64Array }, x: (at: number) => number, y: (value: number) => number, { width, top, height }: Frame): void {
  const bottom = (value: number): number => (value <= 0 && Number.isNaN(y(value)) ? top + height : y(value)); // a logarithm has no 0
  context.beginPath();
  context.globalAlpha = below.length <= width / 4 ? 0.8 : 0.3;
  if (below.length <= width) {
    for (let at = 0; at < below.length; at++) drawBar(context, x(at), bottom(below[at] ?? NaN), y(above[at] ?? NaN));
  } else {
    const columns = Math.floor(width);
    const [{ low }, { high }] = [ranges(below, columns), ranges(above, columns)];
    for (let column = 0; column < columns; column++) {
      const at = x(((column + 0.5) / columns) * below.length - 0.5);
      context.moveTo(at, bottom(low[column] ?? NaN));
      context.lineTo(at, y(high[column] ?? NaN));
    }
  }
  context.stroke();
  context.globalAlpha = 1;
}

/** Draw values at positions of pixels: in a shape, or the range of each pixel where there are more values than pixels. */
function drawValues(context: CanvasRenderingContext2D, shape: string, values: Float64Array, x: (at: number) => number, y: (value: number) => number, w: number): void {
  context.beginPath();
  if (values.length > w * 2) drawRanges(context, values, x, y, Math.floor(w));
  else {
    const hasPoints = shape === "points" || shape === "both" || values.length < w / 8;
    let isOpen = false;
    for (let at = 0; at < values.length; at++) {
      const to = y(values[at] ?? NaN);
      if (Number.isNaN(to)) {
        isOpen = false;
        continue;
      }
      const [left, right] = shape === "steps" ? [x(at - 0.5), x(at + 0.5)] : [x(at), x(at)];
      if (!isOpen || shape === "points") context.moveTo(left, to);
      else context.lineTo(left, to);
      if (right > left) context.lineTo(right, to);
      isOpen = true;
      if (hasPoints) context.fillRect(x(at) - 2, to - 2, 4, 4);
    }
  }
  context.stroke();
}

function drawRanges(context: CanvasRenderingContext2D, values: Float64Array, x: (at: number) => number, y: (value: number) => number, columns: number): void {
  const { low, high } = ranges(values, columns);
  for (let column = 0; column < columns; column++) {
    const [from, to] = [y(low[column] ?? NaN), y(high[column] ?? NaN)];
    if (Number.isNaN(to)) continue;
    const at = x(((column + 0.5) / columns) * values.length - 0.5);
    context.moveTo(at, (Number.isNaN(from) ? to : from) + 0.5);
    context.lineTo(at, to - 0.5);
  }
}
