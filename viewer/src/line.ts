/** A line of numbers on a canvas: per pixel the range of the values there, so that no peak is lost; pan and zoom along it. */

import { el } from "./dom.js";
import { shortText } from "./elements.js";
import { type Tick, valueTicks } from "./ticks.js";

/** The elements from the first index to before the second. */
export type Span = [number, number];

/** Values at every `step`-th element from `first` on. */
export interface Samples {
  values: Float64Array;
  first: number;
  step: number;
}

export interface LineOptions {
  samples: Samples;
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

const MARGIN = { left: 78, bottom: 40, top: 8, right: 8 };
const LEAST = 4;
/** Pixels by which a pointer may move within a click. */
const CLICK = 4;

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
  private readonly observer: ResizeObserver;
  private samples: Samples;
  private span: Span | null;
  private cursor: number | null = null;
  private mark: number | null;

  constructor(private readonly options: LineOptions) {
    ({ samples: this.samples, span: this.span, mark: this.mark } = options);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.listen();
  }

  close(): void {
    this.observer.disconnect();
  }

  setMark(index: number | null): void {
    this.mark = index;
    this.draw();
  }

  setSamples(samples: Samples): void {
    this.samples = samples;
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
    const { canvas, options } = this;
    let drag: { x: number; span: Span; isClick: boolean } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, span: this.shown(), isClick: true };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag === null || event.buttons !== 1) {
        this.setCursor(this.indexAt(event));
        return;
      }
      drag.isClick &&= Math.abs(event.clientX - drag.x) < CLICK;
      const [from, to] = drag.span;
      if (!drag.isClick) this.show(spanAfter(drag.span, options.length, { by: ((drag.x - event.clientX) / this.width()) * (to - from) }));
    });
    canvas.addEventListener("pointerup", (event) => {
      const index = this.indexAt(event);
      if (drag?.isClick === true && index !== null) options.onPick(index);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", () => this.setCursor(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 300), this.placeAt(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => this.key(event));
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

  /** Return where a pointer is, in elements from the first of the axis. */
  private placeAt(event: MouseEvent): number {
    const [from, to] = this.shown();
    const share = (event.clientX - this.canvas.getBoundingClientRect().left - MARGIN.left) / this.width();
    return from + share * (to - from);
  }

  private indexAt(event: MouseEvent): number | null {
    const [from, to] = this.shown();
    const place = this.placeAt(event);
    return place >= from && place < to ? Math.floor(place) : null;
  }

  private width(): number {
    return Math.max(1, this.canvas.clientWidth - MARGIN.left - MARGIN.right);
  }

  /** Return the values that are in sight, with one beyond each end, and the position of the first. */
  private visible(): { values: Float64Array; at: number } {
    const [from, to] = this.shown();
    const { values, first, step } = this.samples;
    const at = Math.max(0, Math.floor((from - first) / step) - 1);
    return { values: values.subarray(at, Math.max(at, Math.ceil((to - first) / step) + 1)), at };
  }

  private draw(): void {
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [this.width(), Math.max(1, this.canvas.clientHeight - MARGIN.bottom - MARGIN.top)];
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [from, to] = this.shown();
    const { values, at } = this.visible();
    const { first, step } = this.samples;
    const [low, high] = limits(values);
    const y = (value: number): number => MARGIN.top + h - ((value - low) / (high - low)) * h;
    const x = (place: number): number => MARGIN.left + ((place - from) / (to - from)) * w;
    this.drawAxes(context, x, y, [low, high], w, h);
    const style = getComputedStyle(this.canvas);
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, w, MARGIN.top + h + 1);
    context.clip();
    context.strokeStyle = style.getPropertyValue("--accent") || "#36c";
    context.fillStyle = context.strokeStyle;
    context.lineWidth = 1.5;
    drawValues(context, values, (one) => x(first + (at + one + 0.5) * step), y, w);
    if (this.mark !== null) {
      context.fillStyle = style.getPropertyValue("--error") || "#c00";
      context.fillRect(x(this.mark + 0.5) - 0.5, MARGIN.top, 1.5, h);
    }
    context.fillStyle = style.color;
    if (this.cursor !== null) context.fillRect(x(this.cursor + 0.5), MARGIN.top, 1, h);
    context.restore();
  }

  private drawAxes(context: CanvasRenderingContext2D, x: (place: number) => number, y: (value: number) => number, [low, high]: [number, number], w: number, h: number): void {
    const style = getComputedStyle(this.canvas);
    const line = style.getPropertyValue("--line") || "#ddd";
    const [from, to] = this.shown();
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = style.color;
    const bottom = MARGIN.top + h;
    for (const { at, text } of this.options.ticks(from, to, Math.floor(w / 90))) {
      if (at + 0.5 < from || at + 0.5 > to) continue;
      context.fillRect(x(at + 0.5), bottom, 1, 4);
      context.fillText(text, x(at + 0.5), bottom + 6, 88);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of valueTicks(low, high, Math.max(2, Math.floor(h / 36)))) {
      context.fillStyle = line;
      context.fillRect(MARGIN.left, y(value), w, 1);
      context.fillStyle = style.color;
      context.fillText(shortText(value), MARGIN.left - 6, y(value), MARGIN.left - 24);
    }
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(this.options.title, MARGIN.left + w / 2, bottom + 30, w);
    context.save();
    context.translate(9, MARGIN.top + h / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(this.options.titleY, 0, 0, h);
    context.restore();
  }
}

/** Return the edges of the axis of values: a little beyond the least and the largest finite value. */
function limits(values: Float64Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(low < high)) return Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
  const edge = 0.03 * (high - low);
  return Number.isFinite(edge) && high + edge > high ? [low - edge, high + edge] : [low, high];
}

/** Draw values at positions of pixels: a line, or the range of each pixel where there are more values than pixels. */
function drawValues(context: CanvasRenderingContext2D, values: Float64Array, x: (at: number) => number, y: (value: number) => number, w: number): void {
  context.beginPath();
  if (values.length <= w * 2) {
    let isOpen = false;
    for (let at = 0; at < values.length; at++) {
      const value = values[at] ?? NaN;
      if (!Number.isFinite(value)) {
        isOpen = false;
        continue;
      }
      if (isOpen) context.lineTo(x(at), y(value));
      else context.moveTo(x(at), y(value));
      isOpen = true;
      if (values.length < w / 8) context.fillRect(x(at) - 2, y(value) - 2, 4, 4);
    }
  } else {
    const columns = Math.floor(w);
    const { low, high } = ranges(values, columns);
    for (let column = 0; column < columns; column++) {
      if (Number.isNaN(low[column])) continue;
      const at = x(((column + 0.5) / columns) * values.length - 0.5);
      context.moveTo(at, y(low[column] ?? 0) + 0.5);
      context.lineTo(at, y(high[column] ?? 0) - 0.5);
    }
  }
  context.stroke();
}
