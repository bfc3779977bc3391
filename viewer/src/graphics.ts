/** Plots that H5Web draws, by WebGL: whether the browser has it, and H5Web's parts, which are loaded when a plot needs them. */

import { el, fill, onLook } from "./dom.js";
import { drawFlat } from "./flat.js";
import type { Look } from "./frame.js";
import type { FramedLook } from "./h5web_framed.js";
import { Shapes } from "./shapes.js";

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
    super("This browser gives pages no WebGL, by which surfaces are drawn. Heat map and Table show the same elements.");
  }
}

/** H5Web's parts; a promise while they are loaded. */
let parts: Promise<H5Web> | H5Web | null = null;

/** Load H5Web's parts and their style, once; again after a failure. */
function h5web(): Promise<H5Web> | H5Web {
  return (parts ??= load().then((found) => (parts = found)).catch((error: unknown) => {
    parts = null;
    throw error;
  }));
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

/** A plot: drawn in the next frame, however often that was asked for, and again when its size or the colours of the page change. */
export class Plot<Seen> {
  readonly element = el("div", { class: "h5web" });
  private readonly ignore: () => void;
  private isClosed = false;
  private isAsked = false;
  private drawn: Drawn<Seen> | null = null;
  private frame = 0;

  /** `look`: what is drawn now; `null`: nothing yet. */
  constructor(
    private readonly start: (parts: H5Web, host: HTMLElement, look: Seen) => Drawn<Seen>,
    private readonly look: () => Seen | null,
    protected readonly onError: (error: unknown) => void,
  ) {
    this.ignore = onLook(this.element, () => this.draw());
  }

  /** Return the canvas that a person acts on; `undefined`: there is none yet. */
  get canvas(): HTMLCanvasElement | undefined {
    return this.element.querySelector<HTMLCanvasElement>("canvas.plot") ?? undefined;
  }

  draw(): void {
    if (this.frame !== 0 || this.isClosed) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const look = this.look();
      if (look !== null) this.show(look);
    });
  }

  close(): void {
    this.isClosed = true;
    this.ignore();
    cancelAnimationFrame(this.frame);
    this.drawn?.close();
  }

  /** Draw by H5Web, as soon as it is there. */
  protected show(look: Seen): void {
    if (this.drawn !== null) this.drawn.update(look);
    else if (isLoaded(parts)) this.drawn = this.start(parts, this.host, look);
    else this.ask();
  }

  protected get host(): HTMLElement {
    return this.element;
  }

  /** Load H5Web, and draw again when it is there. */
  protected ask(): void {
    if (this.isAsked || this.isClosed) return;
    this.isAsked = true;
    Promise.resolve(h5web()).then(() => this.draw(), (error: unknown) => {
      if (!this.isClosed) this.refuse(error);
    });
  }

  /** H5Web cannot be had. */
  protected refuse(error: unknown): void {
    this.isAsked = false;
    this.onError(error);
  }
}

/** Milliseconds after which H5Web is loaded though the first picture is not there yet. */
const LONG = 400;

/**
 * A plot in a frame. Its first picture is drawn without H5Web, which is loaded after that, so that it is there at once; where there is no WebGL,
 * so are the others.
 */
export class FramePlot extends Plot<FramedLook> {
  private readonly shapes: Shapes;
  /** What is drawn on without H5Web; `null`: H5Web draws. */
  private flat: HTMLCanvasElement | null = isLoaded(parts) ? null : el("canvas", { class: "flat", role: "img" });
  private readonly parts = el("div");
  private isAlone = false;
  private timer = 0;

  constructor(look: () => Look | null, onError: (error: unknown) => void) {
    const onDrawn = (): void => this.takeOver();
    const framed = (): FramedLook | null => {
      const found = look();
      return found === null ? null : { ...found, onDrawn };
    };
    super((h5web, host, seen) => h5web.drawFramed(host, seen), framed, onError);
    this.shapes = new Shapes(this.element);
    fill(this.shapes.middle, this.parts, this.flat);
  }

  override close(): void {
    clearTimeout(this.timer);
    super.close();
  }

  protected override get host(): HTMLElement {
    return this.parts;
  }

  protected override show(look: FramedLook): void {
    this.shapes.draw(look);
    if (this.flat !== null) {
      drawFlat(this.flat, look);
      if (this.canvas === undefined) look.frame.onCanvas(this.flat); // a person acts on the first picture already
    }
    if (this.flat === null || !this.isAlone) this.waited(look);
  }

  /** H5Web draws from now on: what it draws on has the keyboard if the first picture had it. */
  private takeOver(): void {
    if (this.flat === null) return;
    const isFocused = document.activeElement === this.flat;
    this.flat.remove();
    this.flat = null;
    if (isFocused) this.canvas?.focus({ preventScroll: true });
  }

  /** Draw by H5Web; until it is there, load it after the first picture. */
  private waited(look: FramedLook): void {
    const isPicture = Number(look.frame.facts["pending"] ?? 0) === 0;
    if (isLoaded(parts)) super.show(look);
    else if (isPicture) window.setTimeout(() => this.ask()); // once it is on the screen
    else if (this.timer === 0) this.timer = window.setTimeout(() => this.ask(), LONG);
  }

  /** Go on without H5Web, and let a person act on what is drawn. */
  protected override refuse(error: unknown): void {
    this.isAlone = true;
    if (!(error instanceof NoGraphicsError)) this.onError(error);
    this.draw();
  }
}

function isLoaded(found: typeof parts): found is H5Web {
  return found !== null && !(found instanceof Promise);
}
