/** A plane in colours: layers of tiles on a canvas; pan, zoom, axes, and the element under the cursor. */

import type { Api, ChunkMap } from "./api.js";
import { drawSelection } from "./axis_drawing.js";
import { el, onLook } from "./dom.js";
import { CLICK, Drags, pixelOf } from "./drags.js";
import { type Element, type Elements, elements } from "./elements.js";
import type { Selection } from "./frame.js";
import type { Layer } from "./layer.js";
import { paintChunks } from "./overlay.js";
import { type Box, type Plane, type Scale, sizeOf } from "./plane.js";
import type { Tick } from "./ticks.js";

export interface Point {
  x: number;
  y: number;
}

export interface Cursor extends Point {
  /** The element as stored, or the elements along the axis of colours; `undefined` until they are known. */
  element: Element | Element[] | undefined;
  dtype: string;
}

export type Overlay = (context: CanvasRenderingContext2D, scale: Scale) => void;

export interface HeatmapOptions {
  /** What the axes and the cursor are of. */
  plane: Plane;
  /** Drawn one after the other. */
  layers: Layer[];
  /** How many of the layers add their light on black; the others cover what is below them. */
  added: number;
  box: [number, number, number] | undefined;
  /** The first row is at the bottom, as where latitudes rise. */
  isUpwards: boolean;
  /** The first column is at the right. */
  isMirrored: boolean;
  /** The whole plane fills the room, so that elements are no squares. */
  isFilled: boolean;
  /** Lines cross the picture at the marks of its axes. */
  hasGuides: boolean;
  titleX: string;
  titleY: string;
  ticksX: (from: number, to: number, count: number) => Tick[];
  ticksY: (from: number, to: number, count: number) => Tick[];
  onCursor: (cursor: Cursor | null) => void;
  /** An element was chosen: by a click, or by Enter. */
  onPick: (at: Point) => void;
  onBox: (box: [number, number, number] | undefined) => void;
  onError: (error: unknown) => void;
}

const MARGIN = { left: 78, bottom: 40, top: 6 };
const MAX_SIZE = 64;

export class Heatmap {
  readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "picture", class: "plot" });
  private left = 0;
  private top = 0;
  /** Pixels of the page per element. */
  private size = 1;
  private isFitted = true;
  private frame = 0;
  private cursor: Point | null = null;
  private picked: Point | null = null;
  private exact: AbortController | null = null;
  private timer = 0;
  private chunkMap: ChunkMap | null = null;
  private overlay: Overlay | null = null;
  /** Where one layer is drawn before it is added to the others: its tiles cover each other. */
  private readonly own = el("canvas");
  private readonly drags = new Drags(this.canvas, {
    grab: () => {
      const { left, top } = this;
      return (right, down) => this.move(left - right / this.size, top - down / this.sizeY);
    },
    hover: (at) => this.setCursor(this.elementAt(at)),
    click: (at) => {
      const found = this.elementAt(at);
      if (this.isInside(found)) this.options.onPick(found);
    },
    take: (selection) => this.take(selection),
    draw: () => this.draw(),
  });
  private readonly ignore: () => void;
  private closed = false;

  constructor(
    private readonly api: Api,
    private readonly options: HeatmapOptions,
  ) {
    if (options.box !== undefined) {
      [this.left, this.top, this.size] = options.box;
      this.isFitted = false;
    }
    this.ignore = onLook(this.canvas, () => this.resize());
    this.listen();
  }

  close(): void {
    this.closed = true;
    this.ignore();
    for (const layer of this.options.layers) layer.close();
    this.exact?.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  setChunks(map: ChunkMap | null): void {
    this.chunkMap = map;
    this.draw();
  }

  setOverlay(overlay: Overlay | null): void {
    this.overlay = overlay;
    this.draw();
  }

  setPicked(at: Point | null): void {
    this.picked = at;
    this.draw();
  }

  /** Read the values again, because they changed. */
  refresh(): void {
    for (const layer of this.options.layers) layer.refresh();
    this.draw();
  }

  /** Show the whole plane. */
  fit(): void {
    const [width, height] = sizeOf(this.options.plane);
    const [w, h] = this.room();
    this.size = this.options.isFilled ? w / width : Math.min(w / width, h / height);
    if (!this.options.isFilled && this.size > 1) this.size = Math.min(MAX_SIZE, this.size);
    this.left = width * this.size <= w ? 0 : width / 2 - w / this.size / 2;
    this.top = height * this.sizeY <= h ? 0 : height / 2 - h / this.sizeY / 2;
    this.isFitted = true;
    this.options.onBox(undefined);
    this.draw();
  }

  zoom(factor: number, at: [number, number] | null = null): void {
    const [w, h] = this.room();
    const [px, py] = at ?? [w / 2, h / 2];
    const [x, y] = [this.left + px / this.size, this.top + py / this.sizeY];
    const [width, height] = sizeOf(this.options.plane);
    const least = Math.min(w / width, this.options.isFilled ? Infinity : h / height, 1) / 2;
    const most = this.options.isFilled ? Math.max(MAX_SIZE, w / width) : MAX_SIZE;
    this.size = Math.min(most, Math.max(least, this.size * factor));
    this.move(x - px / this.size, y - py / this.sizeY);
  }

  private move(left: number, top: number): void {
    const [width, height] = sizeOf(this.options.plane);
    const [w, h] = this.room();
    const [keep, keepY] = [20 / this.size, 20 / this.sizeY];
    this.left = Math.min(width - keep, Math.max(keep - w / this.size, left));
    this.top = Math.min(height - keepY, Math.max(keepY - h / this.sizeY, top));
    this.isFitted = false;
    this.options.onBox([this.left, this.top, this.size]);
    this.draw();
  }

  /** Show what is in the rectangle that was drawn, as large as it fits. */
  private take({ from, to }: Selection): void {
    const [w, h] = this.room();
    const [wide, high] = [Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])];
    if (Math.min(wide, high) < CLICK) return;
    const x = this.left + ((from[0] + to[0]) / 2 - MARGIN.left) / this.size;
    const y = this.top + ((from[1] + to[1]) / 2 - MARGIN.top) / this.sizeY;
    this.zoom(Math.min(w / wide, h / high));
    this.move(x - w / 2 / this.size, y - h / 2 / this.sizeY);
  }

  private room(): [number, number] {
    const { clientWidth, clientHeight } = this.canvas;
    return [Math.max(1, clientWidth - MARGIN.left), Math.max(1, clientHeight - MARGIN.bottom - MARGIN.top)];
  }

  /** Pixels of the page per element along y. */
  private get sizeY(): number {
    if (!this.options.isFilled) return this.size;
    const [w, h] = this.room();
    const [width, height] = sizeOf(this.options.plane);
    return (this.size * (h / height)) / (w / width);
  }

  private resize(): void {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    if (this.isFitted) this.fit();
    else this.draw();
  }

  /** Return the edges of what is visible, in elements. */
  private visible(): Box {
    const [w, h] = this.room();
    const [width, height] = sizeOf(this.options.plane);
    const [left, right, top, bottom] = [this.left, this.left + w / this.size, this.top, this.top + h / this.sizeY];
    const { isUpwards, isMirrored } = this.options;
    return {
      left: isMirrored ? width - right : left, right: isMirrored ? width - left : right,
      top: isUpwards ? height - bottom : top, bottom: isUpwards ? height - top : bottom,
    };
  }

  /** Return a row as it is counted from the top of the picture, and back. */
  private turned(row: number): number {
    return this.options.isUpwards ? sizeOf(this.options.plane)[1] - 1 - row : row;
  }

  /** Return a column as it is counted from the left of the picture, and back. */
  private mirrored(column: number): number {
    return this.options.isMirrored ? sizeOf(this.options.plane)[0] - 1 - column : column;
  }

  // -- drawing -------------------------------------------------------------------------------------------------------

  draw(): void {
    if (this.frame === 0 && !this.closed) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
    }
  }

  /** Draw again after a tile of a layer arrived, and show the element under the cursor if it was among them. */
  update(): void {
    this.readCursor();
    this.draw();
  }

  private paint(): void {
    const context = this.canvas.getContext("2d");
    if (context === null || this.canvas.clientWidth === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = this.room();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    context.save();
    context.translate(0, MARGIN.top);
    context.beginPath();
    context.rect(MARGIN.left, 0, w, h);
    context.clip();
    const scale: Scale = { left: this.left, top: this.top, size: this.size, sizeY: this.sizeY, x: MARGIN.left };
    const [width, height] = sizeOf(this.options.plane);
    const { isUpwards, isMirrored } = this.options;
    if (isUpwards) {
      scale.top = 0;
      context.translate(0, Math.round((height - this.top) * this.sizeY * ratio) / ratio);
      context.scale(1, -1);
    }
    if (isMirrored) {
      [scale.left, scale.x] = [0, 0];
      context.translate(MARGIN.left + Math.round((width - this.left) * this.size * ratio) / ratio, 0);
      context.scale(-1, 1);
    }
    this.paintLayers(context, scale);
    if (this.chunkMap !== null) paintChunks(context, this.options.plane, this.chunkMap, scale);
    this.overlay?.(context, scale);
    if (this.picked !== null) paintMark(context, scale, this.picked, "#ff5d5d");
    if (this.cursor !== null) paintMark(context, scale, this.cursor, "#ffffff");
    context.restore();
    this.paintAxes(context);
    if (this.drags.selection !== null) drawSelection(context, this.drags.selection);
    this.canvas.dataset["pending"] = String(this.options.layers.reduce((sum, layer) => sum + layer.pending, 0));
    this.canvas.dataset["box"] = [MARGIN.left, MARGIN.top, this.left, this.top, this.size, isUpwards ? height : 0, this.sizeY, isMirrored ? width : 0].join(",");
  }

  private paintLayers(context: CanvasRenderingContext2D, scale: Scale): void {
    const { layers, added, plane } = this.options;
    if (added > 0) {
      const [width, height] = sizeOf(plane);
      context.fillStyle = "#000";
      context.fillRect(scale.x - scale.left * scale.size, -scale.top * scale.sizeY, width * scale.size, height * scale.sizeY);
    }
    const own = this.own.getContext("2d");
    if (own === null) return;
    layers.forEach((layer, at) => {
      const wanted = layer.wanted(this.visible(), this.size, this.sizeY);
      layer.request(wanted);
      [this.own.width, this.own.height] = [this.canvas.width, this.canvas.height];
      own.setTransform(context.getTransform());
      layer.draw(own, wanted, scale);
      context.save();
      context.resetTransform();
      context.globalCompositeOperation = at < added ? "lighter" : "source-over";
      context.drawImage(this.own, 0, 0);
      context.restore();
    });
  }

  private paintAxes(context: CanvasRenderingContext2D): void {
    const [w, h] = this.room();
    const [width, height] = sizeOf(this.options.plane);
    const box = this.visible();
    const { titleX, titleY, ticksX, ticksY } = this.options;
    const bottom = Math.min(h, (height - this.top) * this.sizeY) + MARGIN.top;
    const right = MARGIN.left + Math.min(w, (width - this.left) * this.size);
    context.fillStyle = getComputedStyle(this.canvas).color;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const { at, text } of ticksX(Math.max(0, box.left), Math.min(width, box.right), Math.floor(w / 90))) {
      const x = MARGIN.left + (this.mirrored(at) + 0.5 - this.left) * this.size;
      context.fillRect(x, bottom, 1, 4);
      if (this.options.hasGuides) context.fillRect(x, MARGIN.top, 1, bottom - MARGIN.top);
      context.fillText(text, x, bottom + 6, 88);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const { at, text } of ticksY(Math.max(0, box.top), Math.min(height, box.bottom), Math.floor(h / 40))) {
      const y = MARGIN.top + (this.turned(at) + 0.5 - this.top) * this.sizeY;
      context.fillRect(MARGIN.left - 4, y, 4, 1);
      if (this.options.hasGuides) context.fillRect(MARGIN.left, y, right - MARGIN.left, 1);
      context.fillText(text, MARGIN.left - 6, Math.max(6, y), MARGIN.left - 24);
    }
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(titleX, (MARGIN.left + right) / 2, bottom + 28, w);
    context.save();
    context.translate(9, (MARGIN.top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(titleY, 0, 0, h);
    context.restore();
  }

  // -- the cursor ----------------------------------------------------------------------------------------------------

  /** Move the cursor to an element; `null` removes it. */
  private setCursor(at: Point | null): void {
    this.cursor = at !== null && this.isInside(at) ? at : null;
    this.readCursor();
    this.draw();
  }

  private isInside({ x, y }: Point): boolean {
    const [width, height] = sizeOf(this.options.plane);
    return x >= 0 && y >= 0 && x < width && y < height;
  }

  private readCursor(): void {
    clearTimeout(this.timer);
    this.exact?.abort();
    const at = this.cursor;
    if (at === null) {
      this.options.onCursor(null);
      return;
    }
    const layer = this.options.layers.find((one) => one.plane === this.options.plane);
    const known = layer?.exact(at.x, at.y) ?? null;
    if (known !== null) {
      this.options.onCursor({ ...at, element: this.pick(known.tile.elements, known.at, known.color), dtype: known.tile.dtype });
      return;
    }
    this.options.onCursor({ ...at, element: undefined, dtype: "" });
    this.timer = window.setTimeout(() => void this.readExactly(at), 60);
  }

  private pick(values: Elements, first: number, stride: number): Element | Element[] {
    const { color, sources } = this.options.plane;
    if (color === undefined) return values.at(first);
    return Array.from({ length: sources[0]?.node.shape[color] ?? 3 }, (_, part) => values.at(first + part * stride));
  }

  private async readExactly(at: Point): Promise<void> {
    const { plane } = this.options;
    const node = plane.sources[0]?.node;
    if (node === undefined) return;
    const places: Record<number, number | string> = { ...plane.indices, [plane.x]: at.x, [plane.y]: at.y };
    if (plane.color !== undefined) places[plane.color] = ":";
    const request = new AbortController();
    this.exact = request;
    try {
      const query = node.shape.map((_, axis) => `${axis}=${places[axis] ?? 0}`).join("&");
      const raw = await this.api.raw(node.path, query, request.signal);
      if (request.signal.aborted) return;
      this.options.onCursor({ ...at, element: this.pick(elements(raw.bytes, raw.dtype), 0, 1), dtype: raw.dtype });
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    }
  }

  /** Return the element at a place of the canvas. */
  private elementAt([x, y]: [number, number]): Point {
    return { x: this.mirrored(Math.floor(this.left + (x - MARGIN.left) / this.size)), y: this.turned(Math.floor(this.top + (y - MARGIN.top) / this.sizeY)) };
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, y] = pixelOf(event, canvas);
      this.zoom(2 ** (-event.deltaY / 300), [x - MARGIN.left, y - MARGIN.top]);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [width, height] = sizeOf(this.options.plane);
    const middle = this.visible();
    const at = this.cursor ?? {
      x: Math.floor((Math.max(0, middle.left) + Math.min(width, middle.right)) / 2),
      y: Math.floor((Math.max(0, middle.top) + Math.min(height, middle.bottom)) / 2),
    };
    const jump = event.shiftKey ? 10 : 1;
    const down = this.options.isUpwards ? -jump : jump;
    const right = this.options.isMirrored ? -jump : jump;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-right, 0], ArrowRight: [right, 0], ArrowUp: [0, -down], ArrowDown: [0, down],
    };
    const move = moves[event.key];
    if (move !== undefined) {
      const x = Math.min(width - 1, Math.max(0, at.x + (this.cursor === null ? 0 : move[0])));
      const y = Math.min(height - 1, Math.max(0, at.y + (this.cursor === null ? 0 : move[1])));
      this.setCursor({ x, y });
    } else if (event.key === "Enter") this.options.onPick(at);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}

function paintMark(context: CanvasRenderingContext2D, scale: Scale, at: Point, color: string): void {
  const [width, height] = [Math.max(5, scale.size), Math.max(5, scale.sizeY)];
  const x = scale.x + (at.x - scale.left) * scale.size - (width - scale.size) / 2;
  const y = (at.y - scale.top) * scale.sizeY - (height - scale.sizeY) / 2;
  context.lineWidth = 1;
  context.strokeStyle = "#000";
  context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  context.strokeStyle = color;
  context.strokeRect(x, y, width, height);
}
