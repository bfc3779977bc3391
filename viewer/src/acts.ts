/** What a person does on a plot: drags, also of a rectangle with Shift, the wheel, and keys. */

import type { Selection } from "./frame.js";

export type Place = [number, number];

/** Places are in pixels of the canvas. */
export interface ActOptions {
  /** What the canvas is, in words. */
  description: string;
  /** Remember what is shown, and return how that is moved by pixels to the right and down. */
  grab: () => (right: number, down: number) => void;
  /** Zoom by a factor about a place; `null`: about the cursor, or the middle. */
  zoom: (factor: number, at: Place | null, isWithAlt: boolean) => void;
  /** Show everything. */
  fit: () => void;
  /** Act on a key, and return whether it has a meaning. */
  key: (event: KeyboardEvent) => boolean;
  /** The pointer is somewhere, and drags nothing; `null`: it left. */
  hover?: (at: Place | null) => void;
  click?: (at: Place) => void;
  /** A rectangle was drawn; absent: none is. */
  take?: (selection: Selection) => void;
  /** The rectangle changed. */
  draw?: () => void;
}

/** Pixels by which a pointer may move within a click. */
export const CLICK = 4;

/** Steps of a cursor along a line, by keys. */
export const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 };

export class Acts {
  /** The rectangle that is being drawn. */
  selection: Selection | null = null;
  private drag: { from: Place; move: (right: number, down: number) => void; isClick: boolean } | null = null;

  constructor(canvas: HTMLCanvasElement, private readonly options: ActOptions) {
    canvas.classList.add("plot");
    for (const [name, value] of [["tabindex", "0"], ["role", "application"], ["aria-roledescription", options.description]] as const) canvas.setAttribute(name, value);
    canvas.addEventListener("pointerdown", (event) => {
      const at = pixelOf(event, canvas);
      if (event.shiftKey && options.take !== undefined) this.selection = { from: at, to: at };
      else this.drag = { from: at, move: options.grab(), isClick: true };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.move(pixelOf(event, canvas), event.buttons === 1));
    canvas.addEventListener("pointerup", (event) => {
      const { selection, drag } = this;
      this.end();
      if (selection !== null) options.take?.(selection);
      else if (drag?.isClick === true) options.click?.(pixelOf(event, canvas));
    });
    // The browser takes the pointer away, for a gesture of its own.
    canvas.addEventListener("pointercancel", () => this.end());
    canvas.addEventListener("pointerleave", () => options.hover?.(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      options.zoom(2 ** (-event.deltaY / 300), pixelOf(event, canvas), event.altKey);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => options.fit());
    canvas.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event)) event.preventDefault();
    });
  }

  private key(event: KeyboardEvent): boolean {
    const { zoom, fit, key } = this.options;
    if (event.key === "+" || event.key === "=") zoom(1.5, null, false);
    else if (event.key === "-") zoom(1 / 1.5, null, false);
    else if (event.key === "0") fit();
    else return key(event);
    return true;
  }

  private move(at: Place, isDown: boolean): void {
    if (this.selection !== null) {
      this.selection.to = at;
      this.options.draw?.();
    } else if (this.drag === null || !isDown) this.options.hover?.(at);
    else {
      const [right, down] = [at[0] - this.drag.from[0], at[1] - this.drag.from[1]];
      this.drag.isClick &&= Math.hypot(right, down) < CLICK;
      if (!this.drag.isClick) this.drag.move(right, down);
    }
  }

  private end(): void {
    [this.selection, this.drag] = [null, null];
    this.options.draw?.();
  }
}

/** Return where a pointer is, in pixels of the canvas. */
function pixelOf(event: MouseEvent, canvas: HTMLCanvasElement): Place {
  const bounds = canvas.getBoundingClientRect();
  return [event.clientX - bounds.left, event.clientY - bounds.top];
}
