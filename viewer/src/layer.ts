/** One picture of a plane, from tiles: requests them, gives them colours, and places those that are there. */

import type { Api } from "./api.js";
import { type Elements, elements } from "./elements.js";
import type { Paint } from "./paint.js";
import { type Box, choose, coverage, keyOf, overview, type Placed, type Plane, stridesOf, TILE, tileQuery, tilesIn, type TileId } from "./plane.js";

export interface Tile {
  id: TileId;
  elements: Elements;
  dtype: string;
  shape: number[];
  isSample: boolean;
  texels: Texels | null;
}

/** Colours of a tile: four bytes each, red, green and blue multiplied by the opacity. */
export interface Texels {
  id: number;
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

/** A tile on the plot: edges in pixels, the right one below the left where columns run to the left. */
export interface Shown {
  texels: Texels;
  left: number;
  right: number;
  top: number;
  bottom: number;
  isSmooth: boolean;
  /** How many kinds of finer tiles are before it. */
  behind: number;
}

let made = 0;

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
    for (const tile of this.tiles.values()) tile.texels = null;
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
        id, elements: elements(raw.bytes, raw.dtype), dtype: raw.dtype, shape: raw.shape, isSample: raw.isSample, texels: null,
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

  /** Place the tiles that are asked for, the finest first, and coarser ones behind them, which are there until they arrive. */
  shown(wanted: TileId[], placed: Placed): Shown[] {
    const { paint } = this;
    if (paint === null) return [];
    const keys = new Set(wanted.map(keyOf));
    const finest = Math.min(...wanted.map((id) => this.coarseness(id)));
    const shown = [...this.tiles.values()].filter((tile) => tile.elements.length > 0 && (keys.has(keyOf(tile.id)) || this.coarseness(tile.id) > finest));
    const kindOf = ({ id: { source, step, stepY } }: Tile): string => `${source}/${step}/${stepY}`;
    shown.sort((a, b) => this.coarseness(a.id) - this.coarseness(b.id) || kindOf(a).localeCompare(kindOf(b)));
    const kinds = [...new Set(shown.map(kindOf))];
    return shown.map((tile) => ({ ...this.placedTile(tile, paint, placed), behind: kinds.indexOf(kindOf(tile)) }));
  }

  /** Return the number of elements of the finest level along an element of a tile. */
  private coarseness(id: TileId): number {
    const source = this.plane.sources[id.source];
    return Math.max(id.step * (source?.factorX ?? 1), id.stepY * (source?.factorY ?? 1));
  }

  private placedTile(tile: Tile, paint: Paint, { x, y, size, sizeY }: Placed): Omit<Shown, "behind"> {
    const { factorX, factorY } = this.plane.sources[tile.id.source] ?? { factorX: 1, factorY: 1 };
    const cover = coverage(this.plane, tile.id);
    const texels = (tile.texels ??= this.texelsOf(tile, paint));
    const ratio = window.devicePixelRatio || 1;
    const snapped = (place: number): number => Math.round(place * ratio) / ratio;
    return {
      texels,
      left: snapped(x(cover.left * factorX)), right: snapped(x((cover.left + texels.width * tile.id.step) * factorX)),
      top: snapped(y(cover.top * factorY)), bottom: snapped(y((cover.top + texels.height * tile.id.stepY) * factorY)),
      isSmooth: Math.max(size * tile.id.step * factorX, sizeY * tile.id.stepY * factorY) < 0.9,
    };
  }

  private texelsOf(tile: Tile, paint: Paint): Texels {
    const { left, top, right, bottom } = coverage(this.plane, tile.id);
    const width = Math.ceil((right - left) / tile.id.step);
    const height = Math.ceil((bottom - top) / tile.id.stepY);
    const data = new Uint8ClampedArray(4 * width * height);
    const strides = stridesOf(this.plane, tile.shape);
    for (let y = 0, to = 0; y < height; y++) {
      for (let x = 0; x < width; x++, to += 4) {
        paint(tile.elements, y * strides.y + x * strides.x, strides.color, data, to);
        const opacity = data[to + 3] ?? 0;
        if (opacity < 255) for (let part = to; part < to + 3; part++) data[part] = ((data[part] ?? 0) * opacity) / 255;
      }
    }
    return { id: made++, width, height, data };
  }
}
