/** A line of numbers on a canvas: per pixel the range of the values there, so that no peak is lost. */

import { el } from "./dom.js";
import { shortText } from "./elements.js";
import { type Tick, valueTicks } from "./ticks.js";

export interface LineOptions {
  values: Float64Array;
  /** Index that is marked. */
  mark: number | null;
  title: string;
  titleY: string;
  ticks: (count: number) => Tick[];
  onCursor: (index: number | null) => void;
  onPick: (index: number) => void;
}

const MARGIN = { left: 78, bottom: 40, top: 8, right: 8 };

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
  private cursor: number | null = null;
  private mark: number | null;
  private readonly low: number;
  private readonly high: number;

  constructor(private readonly options: LineOptions) {
    this.mark = options.mark;
    let [low, high] = [Infinity, -Infinity];
    for (const value of options.values) {
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (!(low < high)) [low, high] = Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
    const edge = 0.03 * (high - low);
    [this.low, this.high] = Number.isFinite(edge) && high + edge > high ? [low - edge, high + edge] : [low, high];
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => {
      this.setCursor(this.indexAt(event));
    });
    this.canvas.addEventListener("pointerleave", () => this.setCursor(null));
    this.canvas.addEventListener("click", (event) => {
      const index = this.indexAt(event);
      if (index !== null) options.onPick(index);
    });
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.cursor !== null) options.onPick(this.cursor);
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.setCursor(Math.min(options.values.length - 1, Math.max(0, this.cursor === null ? 0 : this.cursor + step)));
    });
  }

  close(): void {
    this.observer.disconnect();
  }

  private setCursor(index: number | null): void {
    this.cursor = index;
    this.options.onCursor(index);
    this.draw();
  }

  setMark(index: number | null): void {
    this.mark = index;
    this.draw();
  }

  private indexAt(event: MouseEvent): number | null {
    const share = (event.clientX - this.canvas.getBoundingClientRect().left - MARGIN.left) / this.width();
    return share >= 0 && share < 1 ? Math.floor(share * this.options.values.length) : null;
  }

  private width(): number {
    return Math.max(1, this.canvas.clientWidth - MARGIN.left - MARGIN.right);
  }

  private draw(): void {
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [this.width(), Math.max(1, this.canvas.clientHeight - MARGIN.bottom - MARGIN.top)];
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { values } = this.options;
    const y = (value: number): number => MARGIN.top + h - ((value - this.low) / (this.high - this.low)) * h;
    const x = (index: number): number => MARGIN.left + ((index + 0.5) / values.length) * w;
    this.drawAxes(context, x, y, w, h);
    const style = getComputedStyle(this.canvas);
    context.strokeStyle = style.getPropertyValue("--accent") || "#36c";
    context.fillStyle = context.strokeStyle;
    context.lineWidth = 1.5;
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
        context.moveTo(MARGIN.left + column + 0.5, y(low[column] ?? 0) + 0.5);
        context.lineTo(MARGIN.left + column + 0.5, y(high[column] ?? 0) - 0.5);
      }
    }
    context.stroke();
    if (this.mark !== null) {
      context.fillStyle = style.getPropertyValue("--error") || "#c00";
      context.fillRect(x(this.mark) - 0.5, MARGIN.top, 1.5, h);
    }
    context.fillStyle = style.color;
    if (this.cursor !== null) context.fillRect(x(this.cursor), MARGIN.top, 1, h);
  }

  private drawAxes(context: CanvasRenderingContext2D, x: (index: number) => number, y: (value: number) => number, w: number, h: number): void {
    const style = getComputedStyle(this.canvas);
    const line = style.getPropertyValue("--line") || "#ddd";
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = style.color;
    const bottom = MARGIN.top + h;
    for (const { at, text } of this.options.ticks(Math.floor(w / 90))) {
      context.fillRect(x(at), bottom, 1, 4);
      context.fillText(text, x(at), bottom + 6, 88);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of valueTicks(this.low, this.high, Math.max(2, Math.floor(h / 36)))) {
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
