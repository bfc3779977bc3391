/** Plots that H5Web draws, by WebGL: whether the browser has it, and H5Web's parts, which are loaded when the first plot needs them. */

import { el, onLook } from "./dom.js";

type H5Web = typeof import("./h5web.js");

/** What is drawn in an element of the page, by what it looks like. */
export interface Drawn<Look> {
  update(look: Look): void;
  close(): void;
}

/** The browser gives pages no WebGL. */
export class NoGraphicsError extends Error {
  override name = "NoGraphicsError";

  constructor() {
    super("This browser gives pages no WebGL, by which the page draws. Table shows the same elements, and the links below have them as files.");
  }
}

let parts: Promise<H5Web> | null = null;

/** Load H5Web's parts and their style, once; again after a failure. */
function h5web(): Promise<H5Web> {
  parts ??= load().catch((error: unknown) => {
    parts = null;
    throw error;
  });
  return parts;
}

/** Load H5Web's parts while the numbers are read that they are to draw; a failure is told by the plot. */
export function prepare(): void {
  void h5web().catch(() => undefined);
}

/** Whether the browser gives pages WebGL 2; remote desktops and machines without a graphics processor may not. */
function hasGraphics(): boolean {
  const context = el("canvas").getContext("webgl2");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return context !== null;
}

async function load(): Promise<H5Web> {
  if (!hasGraphics()) throw new NoGraphicsError();
  const style = el("link", { rel: "stylesheet", href: "h5web.css" });
  const isStyled = new Promise<void>((resolve, reject) => {
    style.addEventListener("load", () => resolve());
    style.addEventListener("error", () => reject(new Error("the style of the plots cannot be loaded")));
  });
  document.head.append(style);
  const [found] = await Promise.all([import("./h5web.js"), isStyled]);
  return found;
}

/** Make a canvas that H5Web has made one that the keyboard reaches. */
export function reachable(canvas: HTMLCanvasElement, description: string): void {
  canvas.classList.add("plot");
  for (const [name, value] of [["tabindex", "0"], ["role", "application"], ["aria-roledescription", description]] as const) canvas.setAttribute(name, value);
}

/** A plot of H5Web: drawn in the next frame, however often that was asked for, and again when its size or the colours of the page change. */
export class Plot<Look> {
  readonly element = el("div", { class: "h5web" });
  private readonly ignore: () => void;
  private isClosed = false;
  private drawn: Drawn<Look> | null = null;
  private frame = 0;

  /** `look`: what is drawn now; `null`: nothing yet. */
  constructor(
    private readonly start: (parts: H5Web, host: HTMLElement, look: Look) => Drawn<Look>,
    private readonly look: () => Look | null,
    private readonly onError: (error: unknown) => void,
  ) {
    this.ignore = onLook(this.element, () => this.draw());
  }

  /** Return the canvas that H5Web draws on; `undefined`: nothing is drawn yet. */
  get canvas(): HTMLCanvasElement | undefined {
    return this.element.querySelector("canvas") ?? undefined;
  }

  draw(): void {
    if (this.frame !== 0 || this.isClosed) return;
    this.frame = requestAnimationFrame(() => void this.update().catch(this.onError).finally(() => (this.frame = 0)));
  }

  close(): void {
    this.isClosed = true;
    this.ignore();
    cancelAnimationFrame(this.frame);
    this.drawn?.close();
  }

  private async update(): Promise<void> {
    const parts = await h5web();
    const look = this.look();
    if (this.isClosed || look === null) return;
    if (this.drawn === null) this.drawn = this.start(parts, this.element, look);
    else this.drawn.update(look);
  }
}
