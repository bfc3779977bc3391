/** A line of numbers on a canvas: per pixel the range of the values there, so that no peak is lost. */

import { el } from "./dom.js";
import { shortText } from "./elements.js";
import { ticks } from "./plane.js";

export interface LineOptions {
  values: Float64Array;
  label: (index: number) => string;
  onCursor: (index: number | null) => void;
}

const MARGIN = { left: 72, bottom: 24, top: 8, right: 8 };

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
  readonly canvas = el("canvas", { tabindex: 0, role: "img", class: "plot" });
  private readonly observer: ResizeObserver;
  private cursor: number | null = null;
  private readonly low: number;
  private readonly high: number;

  constructor(private readonly options: LineOptions) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of options.values) {
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    [this.low, this.high] = low < high ? [low, high] : Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => {
      const bounds = this.canvas.getBoundingClientRect();
      const share = (event.clientX - bounds.left - MARGIN.left) / this.width();
      this.setCursor(share >= 0 && share < 1 ? Math.floor(share * options.values.length) : null);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.setCursor(Math.min(options.values.length - 1, Math.max(0, this.cursor === null ? 0 : this.cursor + step)));
    });
  }

  close(): void {
    this.observer.disconnect();
  }

  setCursor(index: number | null): void {
    this.cursor = index;
    this.options.onCursor(index);
    this.draw();
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
    const style = getComputedStyle(this.canvas);
    const { values } = this.options;
    const y = (value: number): number => MARGIN.top + h - ((value - this.low) / (this.high - this.low)) * h;
    const x = (index: number): number => MARGIN.left + ((index + 0.5) / values.length) * w;
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
        if (values.length < w / 8) context.fillRect(x(at) - 1.5, y(value) - 1.5, 3, 3);
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
    context.fillStyle = style.color;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const at of ticks(0, values.length, Math.floor(w / 90))) {
      context.fillRect(x(at), MARGIN.top + h, 1, 4);
      context.fillText(this.options.label(at), x(at), MARGIN.top + h + 6, 88);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let part = 0; part <= 4; part++) {
      const value = this.low + ((this.high - this.low) * part) / 4;
      context.fillRect(MARGIN.left - 4, y(value), 4, 1);
      context.fillText(shortText(value), MARGIN.left - 6, y(value), MARGIN.left - 8);
    }
    if (this.cursor !== null) {
      context.fillRect(x(this.cursor), MARGIN.top, 1, h);
    }
  }
}
