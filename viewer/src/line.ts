/** Lines of numbers, drawn by H5Web: per pixel the range of the values there, so that no peak is lost; pan and zoom along the axis. */

import { Acts, STEPS } from "./acts.js";
import { el } from "./dom.js";
import { type Look, type Selection, type Stroke, roomOf, valueMarks } from "./frame.js";
import { FramePlot } from "./graphics.js";
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
  label: string;
  title: string;
  titleY: string;
  /** NumPy's name of the type of the values. */
  dtype: string;
  ticks: (from: number, to: number, count: number) => Tick[];
  onCursor: (index: number | null) => void;
  onPick: (index: number) => void;
  /** What is shown changed; `null`: everything. */
  onSpan: (span: Span | null) => void;
  onError: (error: unknown) => void;
}

/** Colours of further lines: custom properties of the page's style. */
const COLORS = ["--accent", "--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5"];
const LEAST = 4;
/** Side of a point, in pixels. */
const SIDE = 4;

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
  readonly plot: FramePlot;
  readonly element: HTMLElement;
  private curves: Curve[];
  private style: LineStyle;
  private span: Span | null;
  private cursor: number | null = null;
  private mark: number | null;
  private acts: Acts | null = null;
  /** What is drawn of the curves; `null`: it is to be computed. */
  private drawn: Drawing | null = null;

  constructor(private readonly options: LineOptions) {
    ({ curves: this.curves, style: this.style, span: this.span, mark: this.mark } = options);
    this.plot = new FramePlot(() => this.look(), options.onError);
    this.element = el("div", { class: "plots lines" }, this.plot.element);
    this.plot.draw();
  }

  close(): void {
    this.plot.close();
  }

  setMark(index: number | null): void {
    this.mark = index;
    this.plot.draw();
  }

  setCurves(curves: Curve[]): void {
    this.curves = curves;
    this.redraw();
  }

  setStyle(style: LineStyle): void {
    this.style = style;
    this.redraw();
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
    this.redraw();
  }

  private shown(): Span {
    return this.span ?? [0, this.options.length];
  }

  private setCursor(index: number | null): void {
    if (index === this.cursor) return;
    this.cursor = index;
    this.options.onCursor(index);
    this.plot.draw();
  }

  // -- the pointer and the keyboard ----------------------------------------------------------------------------------

  private readonly listen = (canvas: HTMLCanvasElement): void => {
    this.acts = new Acts(canvas, {
      description: "line",
      grab: () => {
        const [from, to] = this.shown();
        return (right) => this.show(spanAfter([from, to], this.options.length, { by: (-right / this.width()) * (to - from) }));
      },
      zoom: (factor, at) => this.zoom(factor, at === null ? (this.cursor ?? undefined) : this.placeAt(at[0])),
      fit: () => this.fit(),
      key: (event) => this.key(event),
      hover: (at) => this.setCursor(at === null ? null : this.indexAt(at[0])),
      click: ([x]) => {
        const index = this.indexAt(x);
        if (index !== null) this.options.onPick(index);
      },
      take: (selection) => this.take(selection),
      draw: () => this.plot.draw(),
    });
  };

  /** Show the elements in the part that was drawn. */
  private take({ from, to }: Selection): void {
    const [left, right] = [from[0], to[0]].sort((a, b) => a - b).map((pixel) => this.placeAt(pixel)) as [number, number];
    const span: Span = [Math.max(0, left), Math.min(this.options.length, right)];
    if (span[1] - span[0] >= Math.min(LEAST, this.options.length)) this.show(span);
  }

  private key(event: KeyboardEvent): boolean {
    const [from, to] = this.shown();
    const pixel = Math.max(1, Math.round((to - from) / this.width()));
    const step = STEPS[event.key];
    if (step !== undefined) {
      const at = this.cursor === null ? Math.ceil(from) : this.cursor + step * (event.shiftKey ? 10 : 1) * (Math.abs(step) > 1 ? pixel : 1);
      this.setCursor(Math.min(this.options.length - 1, Math.max(0, at)));
      return true;
    }
    if (event.key !== "Enter" || this.cursor === null) return false;
    this.options.onPick(this.cursor);
    return true;
  }

  /** Return where a pixel of the plot is, in elements from the first of the axis. */
  private placeAt(x: number): number {
    const [from, to] = this.shown();
    return from + (x / this.width()) * (to - from);
  }

  private indexAt(x: number): number | null {
    const [from, to] = this.shown();
    const place = this.placeAt(x);
    return place >= from && place < to ? Math.floor(place) : null;
  }

  private width(): number {
    return roomOf(this.plot.element)?.width ?? 1;
  }

  // -- drawing -------------------------------------------------------------------------------------------------------

  private redraw(): void {
    this.drawn = null;
    this.plot.draw();
  }

  private look(): Look | null {
    const room = roomOf(this.plot.element);
    if (room === null) return null;
    const { width, height } = room;
    if (this.drawn?.width !== width || this.drawn.height !== height) this.drawn = drawingOf(this.curves, this.style, this.shown(), room);
    const { strokes, edges, scaling } = this.drawn;
    const [from, to] = this.shown();
    const x = (place: number): number => ((place - from) / (to - from)) * width;
    const rule = (index: number | null, kind: "marked" | "cursor"): NonNullable<Look["over"]["rules"]> => (index === null ? [] : [{ at: x(index + 0.5), kind }]);
    const ticks = this.options.ticks(from, to, Math.floor(width / 90)).filter((tick) => tick.at + 0.5 >= from && tick.at + 0.5 <= to);
    const { selection } = this.acts ?? { selection: null };
    return {
      frame: {
        width, height, right: width, bottom: height,
        x: { title: this.options.title, marks: ticks.map((tick) => ({ at: x(tick.at + 0.5), text: tick.text })) },
        y: { title: this.options.titleY, marks: valueMarks(scaling, height, true, this.options.dtype) },
        guides: this.style.hasGuides ? "below" : null,
        label: this.options.label,
        facts: { frame: [0, 0, width, height, from, to, ...edges].join(",") },
        onCanvas: this.listen,
      },
      patches: [],
      strokes: strokes.map((stroke) => ({ ...stroke, color: this.colorOf(stroke.curve) })),
      over: {
        rules: [...rule(this.mark, "marked"), ...rule(this.cursor, "cursor")],
        names: this.curves.length < 2 ? [] : this.curves.map(({ name }, curve) => ({ text: name, color: this.colorOf(curve) })),
        selection: selection === null ? null : { from: [selection.from[0], 0], to: [selection.to[0], height] }, // over the whole height
      },
    };
  }

  private colorOf(curve: number): string {
    return getComputedStyle(this.plot.element).getPropertyValue(COLORS[curve % COLORS.length] ?? "") || "#36c";
  }
}

/** What is drawn of curves in a plot of so many pixels. */
interface Drawing {
  width: number;
  height: number;
  strokes: (Omit<Stroke, "color"> & { curve: number })[];
  edges: [number, number];
  scaling: Scaling;
}

/** Draw curves within a span. Pure. */
export function drawingOf(curves: Curve[], style: LineStyle, span: Span, { width, height }: { width: number; height: number }): Drawing {
  const parts = curves.map((curve) => visiblePart(curve, span, style.hasErrors));
  const edges = style.limits ?? edgesOf(parts.flatMap(({ values, bars }) => (bars === null ? [values] : [values, bars.below, bars.above])), style.scale);
  const scaling = scalingOf(style.scale, edges);
  const y = (value: number): number => (1 - scaling.share(value)) * height;
  const strokes = parts.flatMap((part, curve) => {
    const x = (at: number): number => ((part.first + (at + 0.5) * part.step - span[0]) / (span[1] - span[0])) * width;
    const bars = part.bars === null ? [] : [errorStroke(part.bars, x, y, width, height)];
    return [...bars, valueStroke(style.shape, part.values, x, y, width)].map((stroke) => ({ ...stroke, curve }));
  });
  return { width, height, strokes, edges, scaling };
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

type Places = (at: number) => number;

/** Draw errors: a bar with caps at each value, or the range of each pixel where there are more values than pixels. */
function errorStroke({ below, above }: { below: Float64Array; above: Float64Array }, x: Places, y: Places, width: number, height: number): Omit<Stroke, "color"> {
  const bottom = (value: number): number => (value <= 0 && Number.isNaN(y(value)) ? height : y(value)); // a logarithm has no 0
  const path = new Path();
  if (below.length <= width) {
    for (let at = 0; at < below.length; at++) {
      const [place, low, high] = [x(at), bottom(below[at] ?? NaN), y(above[at] ?? NaN)];
      for (const [left, from, right, to] of [[0, low, 0, high], [-3, low, 3, low], [-3, high, 3, high]] as const) path.add(place + left, from).add(place + right, to).end();
    }
  } else {
    const columns = Math.floor(width);
    const [{ low }, { high }] = [ranges(below, columns), ranges(above, columns)];
    for (let column = 0; column < columns; column++) {
      const place = x(((column + 0.5) / columns) * below.length - 0.5);
      path.add(place, bottom(low[column] ?? NaN)).add(place, y(high[column] ?? NaN)).end();
    }
  }
  return { ...path.lists(), width: 1, opacity: below.length <= width / 4 ? 0.8 : 0.3, hasLine: true, side: 0 };
}

/** Draw values in a shape, or the range of each pixel where there are more values than pixels. */
function valueStroke(shape: string, values: Float64Array, x: Places, y: Places, width: number): Omit<Stroke, "color"> {
  const path = new Path();
  const isDense = values.length > width * 2;
  if (isDense) {
    const columns = Math.floor(width);
    const { low, high } = ranges(values, columns);
    for (let column = 0; column < columns; column++) {
      const [from, to] = [y(low[column] ?? NaN), y(high[column] ?? NaN)];
      const place = x(((column + 0.5) / columns) * values.length - 0.5);
      path.add(place, Number.isNaN(from) ? to : from).add(place, to);
    }
  } else {
    for (let at = 0; at < values.length; at++) {
      const to = y(values[at] ?? NaN);
      if (shape === "steps") path.add(x(at - 0.5), to).add(x(at + 0.5), to);
      else path.add(x(at), to);
    }
  }
  return { ...path.lists(), width: 1.5, opacity: 1, hasLine: isDense || shape !== "points", side: !isDense && (shape === "points" || shape === "both" || values.length < width / 8) ? SIDE : 0 };
}

/** Places in pixels, one after the other. */
class Path {
  private readonly x: number[] = [];
  private readonly y: number[] = [];

  add(x: number, y: number): this {
    this.x.push(x);
    this.y.push(y);
    return this;
  }

  /** End the line here. */
  end(): this {
    return this.add(NaN, NaN);
  }

  lists(): { x: Float64Array; y: Float64Array } {
    return { x: Float64Array.from(this.x), y: Float64Array.from(this.y) };
  }
}
