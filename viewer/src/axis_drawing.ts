/** What is drawn over a canvas. */

import type { Selection } from "./frame.js";

export function drawSelection(context: CanvasRenderingContext2D, { from, to }: Selection): void {
  context.strokeStyle = getComputedStyle(context.canvas).color;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.strokeRect(Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]));
  context.setLineDash([]);
}
