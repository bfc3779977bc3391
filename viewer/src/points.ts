/** Points at two numbers each, drawn by H5Web: the keyboard, what is shown of them, and the point under the cursor. */

import type { PointsLook } from "./h5web_points.js";
import { Plot, reachable } from "./graphics.js";
import type { Coloring } from "./paint.js";
import { edgesOf, scalingOf } from "./scales.js";

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
  label: string;
  domain: Domain | null;
  /** A point is under the cursor: its position in the data. */
  onCursor: (at: number | null) => void;
  /** What is shown changed; `null`: everything. */
  onDomain: (domain: Domain | null) => void;
  onError: (error: unknown) => void;
}

/** Return edges on one axis after zooming about its middle, on its scale. Pure. */
export function edgesAfter(edges: [number, number], scale: string, factor: number): [number, number] {
  const scaling = scalingOf(scale, edges);
  const found: [number, number] = [scaling.value(0.5 - 0.5 / factor), scaling.value(0.5 + 0.5 / factor)];
  return found[0] < found[1] && found.every(Number.isFinite) && (scale !== "log" || found[0] > 0) ? found : edges;
}

/** Return the numbers that an axis of values has room for: with the ends of the errors, where they are drawn. Pure. */
export function heightsOf({ y, errors }: PointsData, hasErrors: boolean): Float64Array[] {
  if (errors === null || !hasErrors) return [y];
  return [y, y.map((value, at) => value - (errors[at] ?? NaN)), y.map((value, at) => value + (errors[at] ?? NaN))];
}

export class Points {
  readonly plot: Plot<PointsLook>;
  private domain: Domain | null;
  private cursor: number | null = null;

  constructor(
    private data: PointsData,
    private style: PointsStyle,
    private readonly options: PointsOptions,
  ) {
    this.domain = options.domain;
    this.plot = new Plot((h5web, host, look) => h5web.drawPoints(host, look), () => this.look(), options.onError);
    this.plot.draw();
  }

  close(): void {
    this.plot.close();
  }

  setData(data: PointsData): void {
    this.data = data;
    this.setCursor(null);
  }

  setStyle(style: PointsStyle): void {
    this.style = style;
    this.plot.draw();
  }

  /** Zoom about the middle. */
  zoom(factor: number): void {
    const { scaleX, scaleY } = this.style;
    const [west, east, low, high] = this.domain ?? [...edgesOf([this.data.x], scaleX), ...edgesOf(heightsOf(this.data, this.style.hasErrors), scaleY)];
    this.show([...edgesAfter([west, east], scaleX, factor), ...edgesAfter([low, high], scaleY, factor)]);
  }

  /** Show everything. */
  fit(): void {
    this.show(null);
  }

  private readonly show = (domain: Domain | null): void => {
    this.domain = domain;
    this.options.onDomain(domain);
    this.plot.draw();
  };

  private readonly setCursor = (at: number | null): void => {
    this.cursor = at;
    this.options.onCursor(at);
    this.plot.draw();
  };

  private look(): PointsLook {
    const style = getComputedStyle(this.plot.element);
    const { data, domain, cursor } = this;
    return {
      data, style: this.style, domain, cursor, label: this.options.label, onCanvas: this.listen, onDomain: this.show, onCursor: this.setCursor,
      colors: { accent: style.getPropertyValue("--accent") || "#36c", quiet: style.getPropertyValue("--quiet") || "#888", text: style.color },
    };
  }

  /** Follow the keyboard on a canvas that H5Web has made. */
  private readonly listen = (canvas: HTMLCanvasElement): void => {
    reachable(canvas, "scatter plot");
    canvas.addEventListener("pointerleave", () => this.setCursor(null));
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => this.key(event));
  };

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
}
