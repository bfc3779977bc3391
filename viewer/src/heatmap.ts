/** A plane in colours, drawn by H5Web: layers of tiles; pan, zoom, axes, and the element under the cursor. */

import { Acts, CLICK } from "./acts.js";
import { type Api, type ChunkMap, queryOf } from "./api.js";
import { type Element, type Elements, elements } from "./elements.js";
import { type Frame, type Look, type Mark, type Marked, type Patch, roomOf, type Selection } from "./frame.js";
import { FramePlot } from "./graphics.js";
import type { Layer, Shown } from "./layer.js";
import { chunkLines, edgeOf } from "./overlay.js";
import { type Box, type Placed, overview, type Plane, sizeOf } from "./plane.js";
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
  label: string;
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

const MAX_SIZE = 64;

export class Heatmap {
  readonly plot: FramePlot;
  private left = 0;
  private top = 0;
  /** Pixels of the page per element. */
  private size = 1;
  private isFitted = true;
  private cursor: Point | null = null;
  private picked: Point | null = null;
  private exact: AbortController | null = null;
  private timer = 0;
  private chunkMap: ChunkMap | null = null;
  private coast: string | null = null;
  private acts: Acts | null = null;
  /** What is drawn, and stays until something of other layers is there. */
  private patches: Patch[] = [];

  constructor(
    private readonly api: Api,
    private options: HeatmapOptions,
  ) {
    this.plot = new FramePlot(() => this.look(), options.onError);
    this.setOptions(options);
  }

  /** Draw other layers, or in another way. */
  setOptions(options: HeatmapOptions): void {
    for (const layer of this.options.layers) if (!options.layers.includes(layer)) layer.close();
    this.options = options;
    this.isFitted = options.box === undefined;
    if (options.box !== undefined) [this.left, this.top, this.size] = options.box;
    this.cursor = null;
    for (const layer of options.layers) layer.request([overview(layer.plane)]);
    this.draw();
  }

  close(): void {
    for (const layer of this.options.layers) layer.close();
    this.exact?.abort();
    clearTimeout(this.timer);
    this.plot.close();
  }

  setChunks(map: ChunkMap | null): void {
    this.chunkMap = map;
    this.draw();
  }

  /** Draw coast lines: a path in elements. */
  setCoast(path: string | null): void {
    this.coast = path;
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
    this.isFitted = true;
    this.options.onBox(undefined);
    this.draw();
  }

  /** Place the whole plane in the room. */
  private place(): void {
    const [width, height] = sizeOf(this.options.plane);
    const [w, h] = this.room();
    this.size = this.options.isFilled ? w / width : Math.min(w / width, h / height);
    if (!this.options.isFilled && this.size > 1) this.size = Math.min(MAX_SIZE, this.size);
    this.left = width * this.size <= w ? 0 : width / 2 - w / this.size / 2;
    this.top = height * this.sizeY <= h ? 0 : height / 2 - h / this.sizeY / 2;
  }

  zoom(factor: number, at: [number, number] | null = null): void {
    if (this.isFitted) this.place();
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
    const x = this.left + (from[0] + to[0]) / 2 / this.size;
    const y = this.top + (from[1] + to[1]) / 2 / this.sizeY;
    this.zoom(Math.min(w / wide, h / high));
    this.move(x - w / 2 / this.size, y - h / 2 / this.sizeY);
  }

  private room(): [number, number] {
    const { width, height } = roomOf(this.plot.element) ?? { width: 1, height: 1 };
    return [width, height];
  }

  /** Pixels of the page per element along y. */
  private get sizeY(): number {
    if (!this.options.isFilled) return this.size;
    const [w, h] = this.room();
    const [width, height] = sizeOf(this.options.plane);
    return (this.size * (h / height)) / (w / width);
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
    const { canvas } = this.plot;
    if (canvas !== undefined) canvas.dataset["pending"] = "1"; // until it is drawn
    this.plot.draw();
  }

  /** Draw again after a tile of a layer arrived, and show the element under the cursor if it was among them. */
  update(): void {
    this.readCursor();
    this.draw();
  }

  private look(): Look | null {
    if (roomOf(this.plot.element) === null) return null;
    if (this.isFitted) this.place();
    const { plane, layers, isUpwards, isMirrored, hasGuides, label } = this.options;
    const [columns, rows] = sizeOf(plane);
    const [width, height] = this.room();
    const { size, sizeY, left, top } = this;
    const [x, y] = [(column: number): number => (isMirrored ? columns - column - left : column - left) * size, (row: number): number => (isUpwards ? rows - row - top : row - top) * sizeY];
    const placed: Placed = { x, y, size, sizeY, width, height };
    const patches = this.patchesOf(placed);
    if (patches.length > 0) this.patches = patches;
    const pending = layers.reduce((sum, layer) => sum + layer.pending, 0);
    const box = [0, 0, left, top, size, isUpwards ? rows : 0, sizeY, isMirrored ? columns : 0].join(",");
    return {
      frame: { width, height, ...this.axes(placed), guides: hasGuides ? "over" : null, edge: edgeOf(plane, placed), label, facts: { pending: String(pending), box }, onCanvas: this.listen },
      patches: this.patches,
      strokes: [],
      over: {
        lines: this.chunkMap === null ? [] : chunkLines(plane, this.chunkMap, placed),
        coast: this.coast === null ? null : { path: this.coast, place: { left: x(0), top: y(0), scaleX: isMirrored ? -size : size, scaleY: isUpwards ? -sizeY : sizeY }, columns, rows },
        marks: [markOf(placed, this.picked, "#ff5d5d"), markOf(placed, this.cursor, "#ffffff")].filter((one) => one !== null),
        selection: this.acts?.selection ?? null,
      },
    };
  }

  /** Request the tiles of what is visible, and return the parts in sight of those that are there. */
  private patchesOf(placed: Placed): Patch[] {
    const { layers, added } = this.options;
    const patches = layers.flatMap((layer, at) => {
      const wanted = layer.wanted(this.visible(), this.size, this.sizeY);
      layer.request(wanted);
      return layer.shown(wanted, placed).flatMap((tile) => patchOf(tile, placed, at + 2, at < added));
    });
    if (added === 0 || patches.length === 0) return patches;
    const [columns, rows] = sizeOf(this.options.plane);
    const whole = { texels: BLACK, left: placed.x(0), right: placed.x(columns), top: placed.y(0), bottom: placed.y(rows), isSmooth: false, behind: 0 };
    return [...patchOf(whole, placed, 1, false), ...patches];
  }

  private axes({ width, height }: Placed): Pick<Frame, "right" | "bottom" | "x" | "y"> {
    const [columns, rows] = sizeOf(this.options.plane);
    const box = this.visible();
    const { titleX, titleY, ticksX, ticksY } = this.options;
    const marks = (ticks: Tick[], place: (at: number) => number): Mark[] => ticks.map(({ at, text }) => ({ at: place(at), text }));
    return {
      right: Math.min(width, (columns - this.left) * this.size),
      bottom: Math.min(height, (rows - this.top) * this.sizeY),
      x: { title: titleX, marks: marks(ticksX(Math.max(0, box.left), Math.min(columns, box.right), Math.floor(width / 90)), (at) => (this.mirrored(at) + 0.5 - this.left) * this.size) },
      y: { title: titleY, marks: marks(ticksY(Math.max(0, box.top), Math.min(rows, box.bottom), Math.floor(height / 40)), (at) => (this.turned(at) + 0.5 - this.top) * this.sizeY) },
    };
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
      const raw = await this.api.raw(node.path, queryOf(node, places), request.signal);
      if (request.signal.aborted) return;
      this.options.onCursor({ ...at, element: this.pick(elements(raw.bytes, raw.dtype), 0, 1), dtype: raw.dtype });
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    }
  }

  /** Return the element at a place of the canvas. */
  private elementAt([x, y]: [number, number]): Point {
    return { x: this.mirrored(Math.floor(this.left + x / this.size)), y: this.turned(Math.floor(this.top + y / this.sizeY)) };
  }

  private readonly listen = (canvas: HTMLCanvasElement): void => {
    this.acts = new Acts(canvas, {
      description: "picture",
      grab: () => {
        const { left, top } = this;
        return (right, down) => this.move(left - right / this.size, top - down / this.sizeY);
      },
      zoom: (factor, at) => this.zoom(factor, at),
      fit: () => this.fit(),
      key: (event) => this.key(event),
      hover: (at) => {
        if (at !== null) this.setCursor(this.elementAt(at));
      },
      click: (at) => {
        const found = this.elementAt(at);
        if (this.isInside(found)) this.options.onPick(found);
      },
      take: (selection) => this.take(selection),
      draw: () => this.draw(),
    });
  };

  private key(event: KeyboardEvent): boolean {
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
    else return false;
    return true;
  }
}

/** What channels add their light to. */
const BLACK = { id: -1, width: 1, height: 1, data: new Uint8ClampedArray([0, 0, 0, 255]) };

/** Return the part of a tile that is in sight; nothing where it is outside. Pure. */
export function patchOf({ texels, isSmooth, behind, ...edges }: Shown, { width, height }: Placed, layer: number, isAdded: boolean): Patch[] {
  const [x, y] = [clipped(edges.left, edges.right, width), clipped(edges.top, edges.bottom, height)];
  if (x === null || y === null) return [];
  const share = { left: x.share[0], right: x.share[1], top: y.share[0], bottom: y.share[1] };
  return [{ texels, isSmooth, layer, behind, isAdded, left: x.from, right: x.to, top: y.from, bottom: y.to, share }];
}

/** Cut a side, from its first to its last edge in either direction, to a length: what is left, and its shares of the side. */
function clipped(first: number, last: number, length: number): { from: number; to: number; share: [number, number] } | null {
  const [from, to] = [Math.max(0, Math.min(first, last)), Math.min(length, Math.max(first, last))];
  if (to <= from) return null;
  return { from, to, share: [(from - first) / (last - first), (to - first) / (last - first)] };
}

function markOf({ x, y, size, sizeY }: Placed, at: Point | null, color: string): Marked | null {
  if (at === null) return null;
  const [width, height] = [Math.max(5, size), Math.max(5, sizeY)];
  return { x: (x(at.x) + x(at.x + 1) - width) / 2, y: (y(at.y) + y(at.y + 1) - height) / 2, width, height, color };
}
