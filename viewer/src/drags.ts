/** Drags on a canvas: of what is shown, and with Shift of a rectangle. */

import type { Selection } from "./frame.js";

type Place = [number, number];

/** Places are in pixels of the canvas. */
export interface DragOptions {
  /** Remember what is shown, and return how that is moved by pixels to the right and down. */
  grab: () => (right: number, down: number) => void;
  /** The pointer is somewhere, and drags nothing. */
  hover: (at: Place) => void;
  click: (at: Place) => void;
  /** A rectangle was drawn. */
  take: (selection: Selection) => void;
  /** The rectangle changed. */
  draw: () => void;
}

/** Return where a pointer is, in pixels of the canvas. */
export function pixelOf(event: MouseEvent, canvas: HTMLCanvasElement): Place {
  const bounds = canvas.getBoundingClientRect();
  return [event.clientX - bounds.left, event.clientY - bounds.top];
}

/** Pixels by which a pointer may move within a click. */
export const CLICK = 4;

export class Drags {
  /** The rectangle that is being drawn. */
  selection: Selection | null = null;
  private drag: { from: Place; move: (right: number, down: number) => void; isClick: boolean } | null = null;

  constructor(canvas: HTMLCanvasElement, private readonly options: DragOptions) {
    canvas.addEventListener("pointerdown", (event) => {
      const at = pixelOf(event, canvas);
      if (event.shiftKey) this.selection = { from: at, to: at };
      else this.drag = { from: at, move: options.grab(), isClick: true };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.move(pixelOf(event, canvas), event.buttons === 1));
    canvas.addEventListener("pointerup", (event) => {
      const { selection, drag } = this;
      this.end();
      if (selection !== null) options.take(selection);
      else if (drag?.isClick === true) options.click(pixelOf(event, canvas));
    });
    // The browser takes the pointer away, for a gesture of its own.
    canvas.addEventListener("pointercancel", () => this.end());
  }

  private move(at: Place, isDown: boolean): void {
    if (this.selection !== null) {
      this.selection.to = at;
      this.options.draw();
    } else if (this.drag === null || !isDown) this.options.hover(at);
    else {
      const [right, down] = [at[0] - this.drag.from[0], at[1] - this.drag.from[1]];
      this.drag.isClick &&= Math.hypot(right, down) < CLICK;
      if (!this.drag.isClick) this.drag.move(right, down);
    }
  }

  private end(): void {
    [this.selection, this.drag] = [null, null];
    this.options.draw();
  }
}
