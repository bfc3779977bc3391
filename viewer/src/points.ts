/** Points on a canvas, at two numbers each: pan and zoom in both directions, and the point under the cursor. */

import { drawSelection, drawTick, drawTitles, drawValueAxis, type Frame, frameOf, MARGIN, pixelOf, type Selection } from "./axis_drawing.js";
import { colorTable, shareOf } from "./colors.js";
import { el } from "./dom.js";
import { shortText } from "./elements.js";
import type { Coloring } from "./paint.js";
import { edgesOf, type Scaling, scalingOf } from "./scales.js";

/** Edges of what is shown: the first and last x, the first and last y. */
export type Domain = [number, number, number, number];

export interface PointsData {
  x: Float64Array;
  y: Float64Array;
  /** Numbers that colours are made of; `null`: all points have one colour. */
  tint: Float64Array | null;
  /** How far each y may be from the true one; `null`: that is not known. */
  errors: Float64Array | null;
  titleX: string;
  titleY: string;
}

export interface PointsStyle {
  scaleX: string;
  scaleY: string;
  /** One of `SHAPES`. */
  shape: string;
  hasErrors: boolean;
  hasGuides: boolean;
  coloring: Coloring | null;
}

export interface PointsOptions {
  domain: Domain | null;
  /** A point is under the cursor: its position in the data. */
  onCursor: (at: number | null) => void;
  /** What is shown changed; `null`: everything. */
  onDomain: (domain: Domain | null) => void;
}

/** Pixels within which a point is under the cursor. */
const NEAR = 24;

/** Return edges on one axis after zooming about a share of it, or moving by shares, on its scale. Pure. */
export function edgesAfter(edges: [number, number], scale: string, change: { factor?: number; at?: number; by?: number }): [number, number] {
  const scaling = scalingOf(scale, edges);
  const [factor, at, by] = [change.factor ?? 1, change.at ?? 0.5, change.by ?? 0];
  const found: [number, number] = [scaling.value(by + at - at / factor), scaling.value(by + at + (1 - at) / factor)];
  return found[0] < found[1] && found.every(Number.isFinite) && (scale !== "log" || found[0] > 0) ? found : edges;
}

export class Points {
  readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "scatter plot", class: "plot" });
  private readonly observer: ResizeObserver;
  private domain: Domain | null;
  private cursor: number | null = null;
  private selection: Selection | null = null;
  private frame: Frame = { left: MARGIN.left, top: MARGIN.top, width: 1, height: 1 };

  constructor(
    private data: PointsData,
    private style: PointsStyle,
    private readonly options: PointsOptions,
  ) {
    this.domain = options.domain;
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.listen();
  }

  close(): void {
    this.observer.disconnect();
  }

  setData(data: PointsData): void {
    this.data = data;
    this.setCursor(null);
  }

  setStyle(style: PointsStyle): void {
    this.style = style;
    this.draw();
  }

  zoom(factor: number, [x, y]: [number, number] = [0.5, 0.5]): void {
    const [west, east, low, high] = this.shown();
    this.show([...edgesAfter([west, east], this.style.scaleX, { factor, at: x }), ...edgesAfter([low, high], this.style.scaleY, { factor, at: y })]);
  }

  /** Show everything. */
  fit(): void {
    this.show(null);
  }

  private show(domain: Domain | null): void {
    this.domain = domain;
    this.options.onDomain(domain);
    this.draw();
  }

  /** Return the edges of what is shown; where those that are given have no logarithm, of everything. */
  private shown(): Domain {
    const { scaleX, scaleY } = this.style;
    const given = this.domain;
    const isUsable = (scale: string, edges: number[]): boolean => (edges[0] ?? 0) < (edges[1] ?? 0) && (scale !== "log" || (edges[0] ?? 0) > 0);
    const x = given !== null && isUsable(scaleX, given.slice(0, 2)) ? [given[0], given[1]] : edgesOf([this.data.x], scaleX);
    const y = given !== null && isUsable(scaleY, given.slice(2)) ? [given[2], given[3]] : edgesOf(this.heights(), scaleY);
    return [...x, ...y] as Domain;
  }

  private heights(): Float64Array[] {
    const { y, errors } = this.data;
    if (errors === null || !this.style.hasErrors) return [y];
    return [y, y.map((value, at) => value - (errors[at] ?? NaN)), y.map((value, at) => value + (errors[at] ?? NaN))];
  }

  private scalings(): { x: Scaling; y: Scaling } {
    const [west, east, low, high] = this.shown();
    return { x: scalingOf(this.style.scaleX, [west, east]), y: scalingOf(this.style.scaleY, [low, high]) };
  }

  private setCursor(at: number | null): void {
    this.cursor = at;
    this.options.onCursor(at);
    this.draw();
  }

  private listen(): void {
    const { canvas } = this;
    let drag: { x: number; y: number; domain: Domain } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      const at = pixelOf(event, canvas);
      if (event.shiftKey) this.selection = { from: at, to: at };
      else drag = { x: event.clientX, y: event.clientY, domain: this.shown() };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.selection !== null) {
        this.selection.to = pixelOf(event, canvas);
        this.draw();
        return;
      }
      if (drag === null || event.buttons !== 1) {
        this.setCursor(this.nearest(event));
        return;
      }
      const [west, east, low, high] = drag.domain;
      const [byX, byY] = [(drag.x - event.clientX) / this.frame.width, (event.clientY - drag.y) / this.frame.height];
      this.show([...edgesAfter([west, east], this.style.scaleX, { by: byX }), ...edgesAfter([low, high], this.style.scaleY, { by: byY })]);
    });
    canvas.addEventListener("pointerup", () => {
      drag = null;
      this.take();
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", () => this.setCursor(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 300), this.placeOf(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show what is in the rectangle that was drawn. */
  private take(): void {
    const { selection, frame } = this;
    this.selection = null;
    if (selection === null) return;
    const { x, y } = this.scalings();
    const [west, east] = [selection.from[0], selection.to[0]].sort((a, b) => a - b).map((pixel) => x.value((pixel - frame.left) / frame.width));
    const [high, low] = [selection.from[1], selection.to[1]].sort((a, b) => a - b).map((pixel) => y.value(1 - (pixel - frame.top) / frame.height));
    const domain = [west, east, low, high] as Domain;
    if (domain[0] < domain[1] && domain[2] < domain[3]) this.show(domain);
    else this.draw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[event.key];
    if (step !== undefined) {
      const at = this.cursor === null ? 0 : this.cursor + step * (event.shiftKey ? 10 : 1);
      this.setCursor(Math.min(this.data.x.length - 1, Math.max(0, at)));
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** Return where a pointer is, as shares of the plot: from the left, and from below. */
  private placeOf(event: MouseEvent): [number, number] {
    const { left, top, width, height } = this.frame;
    const [x, y] = pixelOf(event, this.canvas);
    return [(x - left) / width, 1 - (y - top) / height];
  }

  private nearest(event: MouseEvent): number | null {
    const [toX, toY] = this.placeOf(event);
    const { x, y } = this.scalings();
    let [found, least] = [-1, NEAR];
    for (let at = 0; at < this.data.x.length; at++) {
      const distance = Math.hypot((x.share(this.data.x[at] ?? NaN) - toX) * this.frame.width, (y.share(this.data.y[at] ?? NaN) - toY) * this.frame.height);
      if (distance < least) [found, least] = [at, distance];
    }
    return found < 0 ? null : found;
  }

  // -- drawing -------------------------------------------------------------------------------------------------------

  private draw(): void {
    const found = frameOf(this.canvas);
    if (found === null) return;
    const { context, frame } = found;
    this.frame = frame;
    const scalings = this.scalings();
    for (const value of scalings.x.ticks(Math.max(2, Math.floor(frame.width / 90)))) {
      drawTick(context, frame, frame.left + scalings.x.share(value) * frame.width, shortText(value), this.style.hasGuides);
    }
    drawValueAxis(context, frame, scalings.y, this.style.hasGuides);
    drawTitles(context, frame, this.data.titleX, this.data.titleY);
    const [x, y] = [this.data.x.map((one) => frame.left + scalings.x.share(one) * frame.width), this.data.y.map((one) => frame.top + (1 - scalings.y.share(one)) * frame.height)];
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top - 3, frame.width + 3, frame.height + 6);
    context.clip();
    const style = getComputedStyle(this.canvas);
    context.strokeStyle = context.fillStyle = style.getPropertyValue("--accent") || "#36c";
    if (this.data.errors !== null && this.style.hasErrors) this.drawErrors(context, x, this.data.errors, scalings.y, frame);
    if (this.style.shape !== "points") drawJoined(context, x, y, this.style.shape === "steps");
    if (this.style.shape === "both" || this.style.shape === "points") this.drawPoints(context, x, y, style.getPropertyValue("--quiet") || "#888");
    context.strokeStyle = style.color;
    context.lineWidth = 1.5;
    if (this.cursor !== null) context.strokeRect((x[this.cursor] ?? -9) - 5, (y[this.cursor] ?? -9) - 5, 10, 10);
    context.restore();
    if (this.selection !== null) drawSelection(context, this.selection);
    this.canvas.dataset["domain"] = [frame.left, frame.top, frame.width, frame.height, ...this.shown()].join(",");
  }

  private drawErrors(context: CanvasRenderingContext2D, x: Float64Array, errors: Float64Array, scaling: Scaling, { top, height }: Frame): void {
    const pixel = (value: number): number => (Number.isNaN(scaling.share(value)) ? top + height : top + (1 - scaling.share(value)) * height);
    context.globalAlpha = 0.6;
    context.lineWidth = 1;
    context.beginPath();
    this.data.y.forEach((value, at) => {
      const error = errors[at] ?? NaN;
      if (Number.isNaN(value) || Number.isNaN(error)) return;
      context.moveTo(x[at] ?? 0, pixel(value - error));
      context.lineTo(x[at] ?? 0, pixel(value + error));
    });
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Draw the points, those of one colour together. */
  private drawPoints(context: CanvasRenderingContext2D, x: Float64Array, y: Float64Array, quiet: string): void {
    const side = x.length > 20_000 ? 2 : x.length > 2_000 ? 3 : 5;
    const { coloring } = this.style;
    const { tint } = this.data;
    const dot = (at: number): void => context.fillRect((x[at] ?? NaN) - side / 2, (y[at] ?? NaN) - side / 2, side, side);
    if (tint === null || coloring === null) {
      for (let at = 0; at < x.length; at++) dot(at);
      return;
    }
    const table = colorTable(coloring.map);
    const buckets: number[][] = Array.from({ length: 257 }, () => []);
    tint.forEach((value, at) => {
      const share = shareOf(value, coloring.limits[0], coloring.limits[1], coloring.norm);
      buckets[Number.isNaN(share) ? 256 : Math.round(255 * share)]?.push(at);
    });
    buckets.forEach((members, entry) => {
      context.fillStyle = entry === 256 ? quiet : `rgb(${table[3 * entry]}, ${table[3 * entry + 1]}, ${table[3 * entry + 2]})`;
      members.forEach(dot);
    });
  }
}

/** Join points in their order; one that has no place ends a line. */
function drawJoined(context: CanvasRenderingContext2D, x: Float64Array, y: Float64Array, isStepped: boolean): void {
  let last = NaN;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = 0; at < x.length; at++) {
    const [toX, toY] = [x[at] ?? NaN, y[at] ?? NaN];
    const isPlaced = !Number.isNaN(toX) && !Number.isNaN(toY);
    if (isPlaced && Number.isNaN(last)) context.moveTo(toX, toY);
    else if (isPlaced) {
      if (isStepped) context.lineTo(toX, last);
      context.lineTo(toX, toY);
    }
    last = isPlaced ? toY : NaN;
  }
  context.stroke();
}
