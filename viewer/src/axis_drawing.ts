/** What plots of numbers have in common: the axis of values at the left, titles, and the curves' colours. */

import { shortText } from "./elements.js";
import type { Scaling } from "./scales.js";

/** Space beside a plot, in pixels. */
export const MARGIN = { left: 78, bottom: 40, top: 8, right: 8 };

/** Where a plot is on its canvas, in pixels. */
export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Prepare a canvas of the size that the page gives it, and return where its plot is; `null`: it is not shown. */
export function frameOf(canvas: HTMLCanvasElement): { context: CanvasRenderingContext2D; frame: Frame } | null {
  const context = canvas.getContext("2d");
  if (context === null || canvas.clientWidth === 0) return null;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const frame: Frame = {
    left: MARGIN.left, top: MARGIN.top,
    width: Math.max(1, canvas.clientWidth - MARGIN.left - MARGIN.right), height: Math.max(1, canvas.clientHeight - MARGIN.bottom - MARGIN.top),
  };
  return { context, frame };
}

/** Draw the numbers of the axis at the left, each with a line across the plot, if wanted. */
export function drawValueAxis(context: CanvasRenderingContext2D, { left, top, width, height }: Frame, scaling: Scaling, hasGuides: boolean): void {
  const style = getComputedStyle(context.canvas);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of scaling.ticks(Math.max(2, Math.floor(height / 36)))) {
    const y = top + (1 - scaling.share(value)) * height;
    context.fillStyle = hasGuides ? style.getPropertyValue("--line") || "#ddd" : style.color;
    context.fillRect(hasGuides ? left : left - 4, y, hasGuides ? width : 4, 1);
    context.fillStyle = style.color;
    context.fillText(shortText(value), left - 6, y, left - 24);
  }
}

/** Draw a mark of the axis below, with its text, and a line across the plot, if wanted. */
export function drawTick(context: CanvasRenderingContext2D, { top, height }: Frame, x: number, text: string, hasGuides: boolean): void {
  const style = getComputedStyle(context.canvas);
  if (hasGuides) {
    context.fillStyle = style.getPropertyValue("--line") || "#ddd";
    context.fillRect(x, top, 1, height);
  }
  context.fillStyle = style.color;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "top";
  context.fillRect(x, top + height, 1, 4);
  context.fillText(text, x, top + height + 6, 88);
}

/** Draw the titles below and at the left. */
export function drawTitles(context: CanvasRenderingContext2D, { left, top, width, height }: Frame, titleX: string, titleY: string): void {
  context.fillStyle = getComputedStyle(context.canvas).color;
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(titleX, left + width / 2, top + height + 30, width);
  context.save();
  context.translate(9, top + height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(titleY, 0, 0, height);
  context.restore();
}

/** A rectangle that a person draws with Shift: the first corner and the last, in pixels of the canvas. */
export interface Selection {
  from: [number, number];
  to: [number, number];
}

export function drawSelection(context: CanvasRenderingContext2D, { from, to }: Selection): void {
  context.strokeStyle = getComputedStyle(context.canvas).color;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.strokeRect(Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]));
  context.setLineDash([]);
}

/** Return where a pointer is, in pixels of the canvas. */
export function pixelOf(event: MouseEvent, canvas: HTMLCanvasElement): [number, number] {
  const bounds = canvas.getBoundingClientRect();
  return [event.clientX - bounds.left, event.clientY - bounds.top];
}

/** Draw the bar of an error between two pixels, with caps. */
export function drawBar(context: CanvasRenderingContext2D, x: number, from: number, to: number): void {
  if (!Number.isFinite(from) || !Number.isFinite(to)) return;
  context.moveTo(x, from);
  context.lineTo(x, to);
  for (const y of [from, to]) {
    context.moveTo(x - 3, y);
    context.lineTo(x + 3, y);
  }
}
