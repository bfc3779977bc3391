/** One picture of a plane, from tiles: requests them, gives them colours, and draws those that are there. */

import type { Api } from "./api.js";
import { el } from "./dom.js";
import { type Elements, elements } from "./elements.js";
import type { Paint } from "./paint.js";
import { type Box, choose, coverage, keyOf, overview, type Plane, type Scale, stridesOf, TILE, tileQuery, tilesIn, type TileId } from "./plane.js";

export interface Tile {
  id: TileId;
  elements: Elements;
  dtype: string;
  shape: number[];
  isSample: boolean;
  picture: HTMLCanvasElement | null;
}

export interface LayerOptions {
  /** `null`: not known yet, so that nothing is drawn. */
  paint: Paint | null;
  /** A tile arrived: the picture may be drawn again. */
  onTile: (tile: Tile) => void;
  onError: (error: unknown) => void;
}

const MAX_TILES = 400;

export class Layer {
  private readonly tiles = new Map<string, Tile>();
  private readonly loading = new Map<string, AbortController>();
  private stale = new Set<string>();
  /** Tiles that could not be read; they are not requested again until `refresh`. */
  private readonly failed = new Set<string>();
  private paint: Paint | null;

  constructor(
    private readonly api: Api,
    readonly plane: Plane,
    private readonly options: LayerOptions,
  ) {
    this.paint = options.paint;
  }

  close(): void {
    for (const request of this.loading.values()) request.abort();
    this.loading.clear();
  }

  /** Number of tiles in flight. */
  get pending(): number {
    return this.loading.size;
  }

  recolor(paint: Paint | null): void {
    this.paint = paint;
    for (const tile of this.tiles.values()) tile.picture = null;
  }

  /** Read the tiles in sight again; until they are there, the old ones are drawn. */
  refresh(): void {
    this.stale = new Set(this.tiles.keys());
    this.failed.clear();
  }

  /** Return the tile that holds the whole plane, if it was read. */
  whole(): Tile | undefined {
    return this.tiles.get(keyOf(overview(this.plane)));
  }

  /** Return a URL whose answer changes with the values: that of the tile with the whole plane. */
  probe(): string {
    const id = overview(this.plane);
    return this.api.url(this.plane.sources[id.source]?.node.path ?? "", "raw", tileQuery(this.plane, id));
  }

  /** Return the tile with the elements around one, none left out, and the position of that element; `null`: it was not read. */
  exact(x: number, y: number): { tile: Tile; at: number; color: number } | null {
    const tile = this.tiles.get(keyOf({ source: 0, step: 1, stepY: 1, column: Math.floor(x / TILE), row: Math.floor(y / TILE) }));
    if (tile === undefined || tile.isSample) return null;
    const strides = stridesOf(this.plane, tile.shape);
    return { tile, at: (y % TILE) * strides.y + (x % TILE) * strides.x, color: strides.color };
  }

  /** List the tiles for what is visible, at so many pixels per element along x and y: the whole plane first. */
  wanted(visible: Box, size: number, sizeY: number): TileId[] {
    const ratio = window.devicePixelRatio || 1;
    return [overview(this.plane), ...tilesIn(this.plane, visible, choose(this.plane, 1 / (size * ratio), 1 / (sizeY * ratio)))];
  }

  /** Request tiles, and forget those that are neither asked for nor in sight. */
  request(wanted: TileId[]): void {
    const keys = new Set(wanted.map(keyOf));
    for (const [key, request] of this.loading) {
      if (!keys.has(key)) {
        request.abort();
        this.loading.delete(key);
      }
    }
    for (const id of wanted) {
      const key = keyOf(id);
      const isThere = this.tiles.has(key) && !this.stale.has(key);
      if (!isThere && !this.loading.has(key) && !this.failed.has(key)) void this.load(id, key);
    }
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= MAX_TILES && !this.stale.has(key)) continue;
      if (!keys.has(key)) {
        this.tiles.delete(key);
        this.stale.delete(key);
      }
    }
  }

  private async load(id: TileId, key: string): Promise<void> {
    const request = new AbortController();
    this.loading.set(key, request);
    try {
      const path = this.plane.sources[id.source]?.node.path ?? "";
      const raw = await this.api.raw(path, tileQuery(this.plane, id), request.signal);
      const tile: Tile = {
        id, elements: elements(raw.bytes, raw.dtype), dtype: raw.dtype, shape: raw.shape, isSample: raw.isSample, picture: null,
      };
      this.loading.delete(key);
      this.stale.delete(key);
      this.tiles.set(key, tile);
      this.options.onTile(tile);
    } catch (error) {
      if (request.signal.aborted) return;
      this.loading.delete(key);
      this.failed.add(key);
      this.options.onError(error);
    }
  }

  /** Draw the tiles that are asked for in place of coarser ones, which are there until they arrive. The canvas is the layer's own. */
  draw(context: CanvasRenderingContext2D, wanted: TileId[], scale: Scale): void {
    const { paint } = this;
    if (paint === null) return;
    const keys = new Set(wanted.map(keyOf));
    const finest = Math.min(...wanted.map((id) => this.coarseness(id)));
    const shown = [...this.tiles.values()].filter((tile) => keys.has(keyOf(tile.id)) || this.coarseness(tile.id) > finest);
    shown.sort((a, b) => this.coarseness(b.id) - this.coarseness(a.id));
    for (const tile of shown) this.drawTile(context, tile, paint, scale);
  }

  /** Return the number of elements of the finest level along an element of a tile. */
  private coarseness(id: TileId): number {
    const source = this.plane.sources[id.source];
    return Math.max(id.step * (source?.factorX ?? 1), id.stepY * (source?.factorY ?? 1));
  }

  private drawTile(context: CanvasRenderingContext2D, tile: Tile, paint: Paint, { left, top, size, sizeY, x: edge }: Scale): void {
    const source = this.plane.sources[tile.id.source];
    if (source === undefined || tile.elements.length === 0) return;
    const cover = coverage(this.plane, tile.id);
    const picture = (tile.picture ??= this.pictureOf(tile, paint));
    const ratio = window.devicePixelRatio || 1;
    const snapped = (place: number): number => Math.round(place * ratio) / ratio;
    const x = snapped(edge + (cover.left * source.factorX - left) * size);
    const y = snapped((cover.top * source.factorY - top) * sizeY);
    const right = snapped(edge + ((cover.left + picture.width * tile.id.step) * source.factorX - left) * size);
    const bottom = snapped(((cover.top + picture.height * tile.id.stepY) * source.factorY - top) * sizeY);
    context.imageSmoothingEnabled = Math.max(size * tile.id.step * source.factorX, sizeY * tile.id.stepY * source.factorY) < 0.9;
    context.clearRect(x, y, right - x, bottom - y); // what is transparent here must not show a coarser tile below
    context.drawImage(picture, x, y, right - x, bottom - y);
  }

  private pictureOf(tile: Tile, paint: Paint): HTMLCanvasElement {
    const { left, top, right, bottom } = coverage(this.plane, tile.id);
    const width = Math.ceil((right - left) / tile.id.step);
    const height = Math.ceil((bottom - top) / tile.id.stepY);
    const picture = el("canvas", { width, height });
    const context = picture.getContext("2d");
    if (context === null) throw new Error("this browser draws no canvas");
    const image = context.createImageData(width, height);
    const strides = stridesOf(this.plane, tile.shape);
    for (let y = 0, to = 0; y < height; y++) {
      for (let x = 0; x < width; x++, to += 4) paint(tile.elements, y * strides.y + x * strides.x, strides.color, image.data, to);
    }
    context.putImageData(image, 0, 0);
    return picture;
  }
}
