/** A plane of numbers in colours: tiles of stored values, drawn on a canvas; pan, zoom, and the element under the cursor. */

import type { Api, ChunkMap } from "./api.js";
import { colorOf, colorTable, limitsOf } from "./colors.js";
import { el } from "./dom.js";
import { type Element, type Elements, elements, unpack } from "./elements.js";
import { paintChunks } from "./overlay.js";
import { type Box, choose, coverage, keyOf, overview, type Plane, sizeOf, stridesOf, ticks, tileQuery, tilesIn, type TileId } from "./plane.js";

interface Tile {
  id: TileId;
  elements: Elements;
  dtype: string;
  shape: number[];
  isSample: boolean;
  picture: HTMLCanvasElement | null;
}

export interface Cursor {
  x: number;
  y: number;
  /** The element as stored; `undefined` until it is known. */
  element: Element | Element[] | undefined;
  dtype: string;
}

export interface HeatmapOptions {
  plane: Plane;
  map: string;
  limits: [number, number] | null;
  box: [number, number, number] | undefined;
  labelX: (index: number) => string;
  labelY: (index: number) => string;
  onCursor: (cursor: Cursor | null) => void;
  onLimits: (low: number, high: number) => void;
  onBox: (box: [number, number, number] | undefined) => void;
  onError: (error: unknown) => void;
}

const MARGIN = { left: 72, bottom: 24 };
const MAX_TILES = 400;
const MAX_SIZE = 64;

export class Heatmap {
  readonly canvas = el("canvas", { tabindex: 0, role: "img", class: "plot" });
  private readonly tiles = new Map<string, Tile>();
  private readonly loading = new Map<string, AbortController>();
  private left = 0;
  private top = 0;
  /** Pixels of the page per element. */
  private size = 1;
  private isFitted = true;
  private frame = 0;
  private limits: [number, number] | null;
  private cursor: { x: number; y: number } | null = null;
  private exact: AbortController | null = null;
  private timer = 0;
  private chunkMap: ChunkMap | null = null;
  private readonly observer: ResizeObserver;
  private closed = false;

  constructor(
    private readonly api: Api,
    private readonly options: HeatmapOptions,
  ) {
    this.limits = options.limits;
    if (options.box !== undefined) {
      [this.left, this.top, this.size] = options.box;
      this.isFitted = false;
    }
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
    this.listen();
  }

  close(): void {
    this.closed = true;
    this.observer.disconnect();
    for (const request of this.loading.values()) request.abort();
    this.exact?.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  setColors(map: string, limits: [number, number] | null): void {
    this.options.map = map;
    this.limits = limits;
    for (const tile of this.tiles.values()) tile.picture = null;
    if (limits === null) this.autoLimits();
    this.draw();
  }

  setChunks(map: ChunkMap | null): void {
    this.chunkMap = map;
    this.draw();
  }

  /** Show the whole plane. */
  fit(): void {
    const [width, height] = sizeOf(this.options.plane);
    const [w, h] = this.room();
    this.size = Math.min(w / width, h / height);
    this.size = this.size > 1 ? Math.min(MAX_SIZE, this.size) : this.size;
    this.left = width / 2 - w / this.size / 2;
    this.top = height / 2 - h / this.size / 2;
    if (width * this.size <= w) this.left = 0;
    if (height * this.size <= h) this.top = 0;
    this.isFitted = true;
    this.options.onBox(undefined);
    this.draw();
  }

  zoom(factor: number, at: [number, number] | null = null): void {
    const [w, h] = this.room();
    const [px, py] = at ?? [w / 2, h / 2];
    const [x, y] = [this.left + px / this.size, this.top + py / this.size];
    const [width, height] = sizeOf(this.options.plane);
    const least = Math.min(w / width, h / height, 1) / 2;
    this.size = Math.min(MAX_SIZE, Math.max(least, this.size * factor));
    this.move(x - px / this.size, y - py / this.size);
  }

  private move(left: number, top: number): void {
    const [width, height] = sizeOf(this.options.plane);
    const [w, h] = this.room();
    const keep = 20 / this.size;
    this.left = Math.min(width - keep, Math.max(keep - w / this.size, left));
    this.top = Math.min(height - keep, Math.max(keep - h / this.size, top));
    this.isFitted = false;
    this.options.onBox([this.left, this.top, this.size]);
    this.draw();
  }

  private room(): [number, number] {
    const { clientWidth, clientHeight } = this.canvas;
    return [Math.max(1, clientWidth - MARGIN.left), Math.max(1, clientHeight - MARGIN.bottom)];
  }

  private resize(): void {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    if (this.isFitted) this.fit();
    else this.draw();
  }

  // -- tiles ---------------------------------------------------------------------------------------------------------

  private visible(): Box {
    const [w, h] = this.room();
    return { left: this.left, top: this.top, right: this.left + w / this.size, bottom: this.top + h / this.size };
  }

  private wanted(): TileId[] {
    const { plane } = this.options;
    const ratio = window.devicePixelRatio || 1;
    const { source, step } = choose(plane, 1 / (this.size * ratio));
    return [overview(plane), ...tilesIn(plane, this.visible(), source, step)];
  }

  private request(wanted: TileId[]): void {
    const keys = new Set(wanted.map(keyOf));
    for (const [key, request] of this.loading) {
      if (!keys.has(key)) {
        request.abort();
        this.loading.delete(key);
      }
    }
    for (const id of wanted) {
      const key = keyOf(id);
      if (!this.tiles.has(key) && !this.loading.has(key)) void this.load(id, key);
    }
    while (this.tiles.size > MAX_TILES) {
      const oldest = [...this.tiles.keys()].find((key) => !keys.has(key));
      if (oldest === undefined) break;
      this.tiles.delete(oldest);
    }
  }

  private async load(id: TileId, key: string): Promise<void> {
    const { plane } = this.options;
    const request = new AbortController();
    this.loading.set(key, request);
    try {
      const path = plane.sources[id.source]?.node.path ?? "";
      const raw = await this.api.raw(path, tileQuery(plane, id), request.signal);
      this.tiles.set(key, {
        id, elements: elements(raw.bytes, raw.dtype), dtype: raw.dtype, shape: raw.shape, isSample: raw.isSample, picture: null,
      });
      if (this.limits === null) this.autoLimits();
      this.readCursor();
      this.draw();
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    } finally {
      if (this.loading.get(key) === request && !request.signal.aborted) this.loading.delete(key);
      this.canvas.dataset["pending"] = String(this.loading.size);
    }
  }

  /** Choose limits by the values of the whole plane, as far as they are known. */
  private autoLimits(): void {
    const { plane } = this.options;
    const whole = this.tiles.get(keyOf(overview(plane)));
    if (whole === undefined || plane.color !== undefined) return;
    const packing = plane.sources[0]?.node.packing ?? null;
    const values = new Float64Array(whole.elements.length);
    for (let at = 0; at < values.length; at++) values[at] = unpack(packing, whole.elements.number(at));
    this.limits = limitsOf(values);
    for (const tile of this.tiles.values()) tile.picture = null;
    this.options.onLimits(...this.limits);
  }

  private pictureOf(tile: Tile): HTMLCanvasElement {
    if (tile.picture !== null) return tile.picture;
    const { plane } = this.options;
    const { left, top, right, bottom } = coverage(plane, tile.id);
    const width = Math.ceil((right - left) / tile.id.step);
    const height = Math.ceil((bottom - top) / tile.id.step);
    const picture = el("canvas", { width, height });
    const context = picture.getContext("2d");
    if (context === null) throw new Error("this browser draws no canvas");
    const image = context.createImageData(width, height);
    const strides = stridesOf(plane, tile.shape);
    const table = colorTable(this.options.map);
    const [low, high] = this.limits ?? [0, 1];
    const packing = plane.sources[0]?.node.packing ?? null;
    const parts = plane.color === undefined ? 0 : (plane.sources[0]?.node.shape[plane.color] ?? 3);
    let out = 0;
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++, out += 4) {
        const at = y * strides.y + x * strides.x;
        if (parts > 0) {
          for (let part = 0; part < 4; part++) {
            image.data[out + part] = part < parts ? tile.elements.number(at + part * strides.color) : 255;
          }
          continue;
        }
        const color = colorOf(unpack(packing, tile.elements.number(at)), low, high);
        if (color < 0) continue; // transparent
        image.data[out] = table[3 * color] ?? 0;
        image.data[out + 1] = table[3 * color + 1] ?? 0;
        image.data[out + 2] = table[3 * color + 2] ?? 0;
        image.data[out + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
    tile.picture = picture;
    return picture;
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

  private paint(): void {
    const context = this.canvas.getContext("2d");
    if (context === null || this.canvas.clientWidth === 0) return;
    const wanted = this.wanted();
    this.request(wanted);
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = this.room();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, w, h);
    context.clip();
    context.imageSmoothingEnabled = false;
    const keys = new Set(wanted.map(keyOf));
    const order = [...this.tiles.values()].sort((a, b) => this.coarseness(b) - this.coarseness(a));
    if (this.limits !== null || this.options.plane.color !== undefined) {
      const finest = Math.min(...wanted.map((id) => this.coarsenessOf(id)));
      for (const tile of order) {
        if (keys.has(keyOf(tile.id)) || this.coarseness(tile) > finest) this.paintTile(context, tile);
      }
    }
    if (this.chunkMap !== null) {
      paintChunks(context, this.options.plane, this.chunkMap, { left: this.left, top: this.top, size: this.size, x: MARGIN.left });
    }
    if (this.cursor !== null) this.paintCursor(context, this.cursor);
    context.restore();
    this.paintAxes(context);
    this.canvas.dataset["pending"] = String(this.loading.size);
    this.canvas.dataset["box"] = [MARGIN.left, 0, this.left, this.top, this.size].join(",");
  }

  private coarseness(tile: Tile): number {
    return this.coarsenessOf(tile.id);
  }

  private coarsenessOf(id: TileId): number {
    const source = this.options.plane.sources[id.source];
    return id.step * (source === undefined ? 1 : Math.max(source.factorX, source.factorY));
  }

  private paintTile(context: CanvasRenderingContext2D, tile: Tile): void {
    const source = this.options.plane.sources[tile.id.source];
    if (source === undefined || tile.elements.length === 0) return;
    const cover = coverage(this.options.plane, tile.id);
    const picture = this.pictureOf(tile);
    const x = MARGIN.left + (cover.left * source.factorX - this.left) * this.size;
    const y = (cover.top * source.factorY - this.top) * this.size;
    const width = picture.width * tile.id.step * source.factorX * this.size;
    const height = picture.height * tile.id.step * source.factorY * this.size;
    context.imageSmoothingEnabled = this.size * this.coarseness(tile) < 0.9;
    context.drawImage(picture, x, y, width, height);
  }

  private paintCursor(context: CanvasRenderingContext2D, cursor: { x: number; y: number }): void {
    const side = Math.max(5, this.size);
    const shift = (side - this.size) / 2;
    const x = MARGIN.left + (cursor.x - this.left) * this.size - shift;
    const y = (cursor.y - this.top) * this.size - shift;
    context.lineWidth = 1;
    context.strokeStyle = "#000";
    context.strokeRect(x - 1, y - 1, side + 2, side + 2);
    context.strokeStyle = "#fff";
    context.strokeRect(x, y, side, side);
  }

  private paintAxes(context: CanvasRenderingContext2D): void {
    const [w, h] = this.room();
    const [width, height] = sizeOf(this.options.plane);
    const box = this.visible();
    context.fillStyle = getComputedStyle(this.canvas).color;
    context.strokeStyle = context.fillStyle;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const at of ticks(Math.max(0, box.left), Math.min(width, box.right), Math.floor(w / 90))) {
      const x = MARGIN.left + (at + 0.5 - this.left) * this.size;
      context.fillRect(x, h, 1, 4);
      context.fillText(this.options.labelX(at), x, h + 6, 88);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const at of ticks(Math.max(0, box.top), Math.min(height, box.bottom), Math.floor(h / 40))) {
      const y = (at + 0.5 - this.top) * this.size;
      context.fillRect(MARGIN.left - 4, y, 4, 1);
      context.fillText(this.options.labelY(at), MARGIN.left - 6, Math.max(6, y), MARGIN.left - 8);
    }
  }

  // -- the cursor ----------------------------------------------------------------------------------------------------

  /** Move the cursor to an element; `null` removes it. */
  setCursor(at: { x: number; y: number } | null): void {
    const [width, height] = sizeOf(this.options.plane);
    const inside = at !== null && at.x >= 0 && at.y >= 0 && at.x < width && at.y < height;
    this.cursor = inside ? at : null;
    this.readCursor();
    this.draw();
  }

  private readCursor(): void {
    clearTimeout(this.timer);
    this.exact?.abort();
    const at = this.cursor;
    if (at === null) {
      this.options.onCursor(null);
      return;
    }
    const { plane } = this.options;
    const id = { source: 0, step: 1, column: Math.floor(at.x / 256), row: Math.floor(at.y / 256) };
    const tile = this.tiles.get(keyOf(id));
    if (tile !== undefined && !tile.isSample) {
      const strides = stridesOf(plane, tile.shape);
      const first = (at.y % 256) * strides.y + (at.x % 256) * strides.x;
      this.options.onCursor({ ...at, element: this.pick(tile.elements, first, strides.color), dtype: tile.dtype });
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

  private async readExactly(at: { x: number; y: number }): Promise<void> {
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

  private listen(): void {
    const { canvas } = this;
    const place = (event: MouseEvent): [number, number] => {
      const bounds = canvas.getBoundingClientRect();
      return [event.clientX - bounds.left - MARGIN.left, event.clientY - bounds.top];
    };
    let drag: { px: number; py: number; left: number; top: number } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      const [px, py] = place(event);
      drag = { px, py, left: this.left, top: this.top };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = place(event);
      if (drag !== null && event.buttons === 1) {
        this.move(drag.left - (px - drag.px) / this.size, drag.top - (py - drag.py) / this.size);
        return;
      }
      this.setCursor({ x: Math.floor(this.left + px / this.size), y: Math.floor(this.top + py / this.size) });
    });
    canvas.addEventListener("pointerup", () => (drag = null));
    canvas.addEventListener("pointerleave", () => {
      drag = null;
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 300), place(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const [width, height] = sizeOf(this.options.plane);
    const middle = this.visible();
    const at = this.cursor ?? {
      x: Math.floor((Math.max(0, middle.left) + Math.min(width, middle.right)) / 2),
      y: Math.floor((Math.max(0, middle.top) + Math.min(height, middle.bottom)) / 2),
    };
    const jump = event.shiftKey ? 10 : 1;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-jump, 0], ArrowRight: [jump, 0], ArrowUp: [0, -jump], ArrowDown: [0, jump],
    };
    const move = moves[event.key];
    if (move !== undefined) {
      const x = Math.min(width - 1, Math.max(0, at.x + (this.cursor === null ? 0 : move[0])));
      const y = Math.min(height - 1, Math.max(0, at.y + (this.cursor === null ? 0 : move[1])));
      this.setCursor({ x, y });
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}
