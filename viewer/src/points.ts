/** Points at two numbers each, with bars of errors and lines that join them: the keyboard, what is shown of them, and the point under the cursor. */

import { Acts, CLICK, type Place, STEPS } from "./acts.js";
import { shareOf } from "./colors.js";
import { type Look, type Marked, type Moved, roomOf, type Stroke, valueMarks } from "./frame.js";
import { FramePlot } from "./graphics.js";
import type { Coloring } from "./paint.js";
import { edgesOf, type Scaling, scalingOf } from "./scales.js";

/** Edges of what is shown: the first and last x, the first and last y. */
export type Domain = [number, number, number, number];

export interface PointsData {
  x: Float64Array;
  y: Float64Array;
  /** Numbers that colours are made of; `null`: all points have one colour. */
  tint: Float64Array | null;
  /** How far each y may be from the true one; `null`: that is not known. */
  errors: Float64Array | null;
  titleX: string;
  titleY: string;
}

export interface PointsStyle {
  scaleX: string;
  scaleY: string;
  /** One of `SHAPES`. */
  shape: string;
  hasErrors: boolean;
  hasGuides: boolean;
  coloring: Coloring | null;
}

export interface PointsOptions {
  label: string;
  domain: Domain | null;
  /** A point is under the cursor: its position in the data. */
  onCursor: (at: number | null) => void;
  /** What is shown changed; `null`: everything. */
  onDomain: (domain: Domain | null) => void;
  onError: (error: unknown) => void;
}

/** A factor of zoom about a share of an axis, and a move by a share of it. */
interface Change {
  factor?: number;
  at?: number;
  by?: number;
}

/** Return edges on one axis after zooming about a share of it, and moving by a share, on its scale. Pure. */
export function edgesAfter(edges: [number, number], scale: string, { factor = 1, at = 0.5, by = 0 }: Change, all = edges): [number, number] {
  const scaling = scalingOf(scale, edges, all);
  const from = at - at / factor + by;
  const found: [number, number] = [scaling.value(from), scaling.value(from + 1 / factor)];
  return found[0] < found[1] && found.every(Number.isFinite) && (scale !== "log" || found[0] > 0) ? found : edges;
}

/** Return the numbers that an axis of values has room for: with the ends of the errors, where they are drawn. Pure. */
function heightsOf({ y, errors }: PointsData, hasErrors: boolean): Float64Array[] {
  if (errors === null || !hasErrors) return [y];
  return [y, y.map((value, at) => value - (errors[at] ?? NaN)), y.map((value, at) => value + (errors[at] ?? NaN))];
}

/** Pixels within which a point is under the cursor. */
const NEAR = 24;
/** A place far below every plot, in pixels. */
const FAR = 1e5;
/** How much larger or smaller the places of points are drawn than they were computed. */
const STRETCH = 64;

/** The places of points in a plot of a size that shows a domain, and what is drawn at them. */
interface Places {
  room: { width: number; height: number };
  domain: Domain;
  x: Float64Array;
  y: Float64Array;
  strokes: Omit<Stroke, "color">[];
}

export class Points {
  readonly plot: FramePlot;
  private domain: Domain | null;
  private cursor: number | null = null;
  private acts: Acts | null = null;
  /** Edges of everything; `null`: they are to be computed, as are the places. */
  private edges: Domain | null = null;
  private places: Places | null = null;

  constructor(
    private data: PointsData,
    private style: PointsStyle,
    private readonly options: PointsOptions,
  ) {
    this.domain = options.domain;
    this.plot = new FramePlot(() => this.look(), options.onError);
    this.plot.draw();
  }

  close(): void {
    this.plot.close();
  }

  setData(data: PointsData): void {
    this.data = data;
    this.edges = null;
    this.setCursor(null);
  }

  setStyle(style: PointsStyle): void {
    this.style = style;
    this.edges = null;
    this.plot.draw();
  }

  /** Zoom by factors along x and y about shares of the axes, or the middle. */
  zoom(factor: number, [x, y]: [number, number] = [0.5, 0.5], factorY = factor): void {
    this.show(this.after(this.shown(), { factor, at: x }, { factor: factorY, at: y }));
  }

  /** Show everything. */
  fit(): void {
    this.show(null);
  }

  private show(domain: Domain | null): void {
    this.domain = domain;
    this.options.onDomain(domain);
    this.plot.draw();
  }

  private setCursor(at: number | null): void {
    this.cursor = at;
    this.options.onCursor(at);
    this.plot.draw();
  }

  private after([west, east, low, high]: Domain, x: Change, y: Change): Domain {
    const [first, last, least, most] = this.all();
    return [...edgesAfter([west, east], this.style.scaleX, x, [first, last]), ...edgesAfter([low, high], this.style.scaleY, y, [least, most])];
  }

  /** Return the edges of everything. */
  private all(): Domain {
    const { data, style } = this;
    if (this.edges === null) [this.edges, this.places] = [[...edgesOf([data.x], style.scaleX), ...edgesOf(heightsOf(data, style.hasErrors), style.scaleY)], null];
    return this.edges;
  }

  /** Return the edges of what is shown; where those that are wanted have no logarithm, of everything. */
  private shown(): Domain {
    const [west, east, low, high] = this.all();
    const part = (edges: [number, number], scale: string, [from, to]: [number, number]): [number, number] => (from < to && (scale !== "log" || from > 0) ? [from, to] : edges);
    const { domain, style } = this;
    return domain === null ? [west, east, low, high] : [...part([west, east], style.scaleX, [domain[0], domain[1]]), ...part([low, high], style.scaleY, [domain[2], domain[3]])];
  }

  private scalings([west, east, low, high]: Domain): { x: Scaling; y: Scaling } {
    const [first, last, least, most] = this.all();
    return { x: scalingOf(this.style.scaleX, [west, east], [first, last]), y: scalingOf(this.style.scaleY, [low, high], [least, most]) };
  }

  // -- the pointer and the keyboard ----------------------------------------------------------------------------------

  /** Follow the pointer and the keyboard on the canvas of the plot. */
  private readonly listen = (canvas: HTMLCanvasElement): void => {
    const shareOf = ([x, y]: Place): Place => [x / canvas.clientWidth, 1 - y / canvas.clientHeight];
    this.acts = new Acts(canvas, {
      description: "scatter plot",
      grab: () => {
        const from = this.shown();
        return (right, down) => this.show(this.after(from, { by: -right / canvas.clientWidth }, { by: down / canvas.clientHeight }));
      },
      zoom: (factor, at, isAlongX) => this.zoom(factor, at === null ? undefined : shareOf(at), isAlongX ? 1 : factor),
      fit: () => this.fit(),
      key: (event) => this.key(event),
      hover: (at) => {
        const found = at === null ? null : this.nearest(at);
        if (found !== this.cursor) this.setCursor(found);
      },
      take: ({ from, to }) => {
        if (Math.min(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])) < CLICK) return;
        const [first, last] = [shareOf(from), shareOf(to)];
        const part = (axis: 0 | 1): Change => ({ factor: 1 / Math.abs(last[axis] - first[axis]), at: 0, by: Math.min(first[axis], last[axis]) });
        this.show(this.after(this.shown(), part(0), part(1)));
      },
      draw: () => this.plot.draw(),
    });
  };

  private key(event: KeyboardEvent): boolean {
    const step = STEPS[event.key];
    if (step === undefined) return false;
    const at = this.cursor === null ? 0 : this.cursor + step * (event.shiftKey ? 10 : 1);
    this.setCursor(Math.min(this.data.x.length - 1, Math.max(0, at)));
    return true;
  }

  /** Return the point that is near a pixel; `null`: there is none. */
  private nearest([toX, toY]: [number, number]): number | null {
    if (this.places === null) return null;
    const { x, y } = this.places;
    const { left, top, scaleX, scaleY } = this.movedFrom(this.places);
    let [found, least] = [-1, NEAR];
    for (let at = 0; at < x.length; at++) {
      const distance = Math.hypot(left + scaleX * (x[at] ?? NaN) - toX, top + scaleY * (y[at] ?? NaN) - toY);
      if (distance < least) [found, least] = [at, distance];
    }
    return found < 0 ? null : found;
  }

  // -- drawing -------------------------------------------------------------------------------------------------------

  private look(): Look | null {
    const room = roomOf(this.plot.element);
    if (room === null) return null;
    const { width, height } = room;
    const domain = this.shown();
    const scalings = this.scalings(domain);
    const places = this.placesIn(room, domain);
    const moved = this.movedFrom(places);
    const page = getComputedStyle(this.plot.element);
    const color = page.getPropertyValue("--accent") || "#36c";
    return {
      frame: {
        width, height, right: width, bottom: height,
        x: { title: this.data.titleX, marks: valueMarks(scalings.x, width, false) },
        y: { title: this.data.titleY, marks: valueMarks(scalings.y, height, true) },
        guides: this.style.hasGuides ? "below" : null,
        label: this.options.label,
        facts: { domain: [0, 0, width, height, ...domain].join(",") },
        onCanvas: this.listen,
      },
      patches: [],
      strokes: places.strokes.map((stroke) => ({ ...stroke, color, moved })),
      over: { marks: this.marks(places, moved, page.color), selection: this.acts?.selection ?? null },
    };
  }

  private marks({ x, y }: Places, { left, top, scaleX, scaleY }: Moved, color: string): Marked[] {
    const [atX, atY] = [left + scaleX * (x[this.cursor ?? -1] ?? NaN), top + scaleY * (y[this.cursor ?? -1] ?? NaN)];
    return Number.isFinite(atX + atY) ? [{ x: atX - 5, y: atY - 5, width: 10, height: 10, color }] : [];
  }

  /** Return the places of the points, computed for a domain that is not far from what is shown. */
  private placesIn(room: Places["room"], domain: Domain): Places {
    const known = this.places;
    if (known?.room.width === room.width && known.room.height === room.height) {
      const { scaleX, scaleY } = this.movedFrom(known);
      if ([scaleX, scaleY].every((scale) => scale < STRETCH && scale > 1 / STRETCH)) return known;
    }
    const scalings = this.scalings(domain);
    const { data, style } = this;
    const [x, y] = [data.x.map((value) => scalings.x.share(value) * room.width), data.y.map((value) => (1 - scalings.y.share(value)) * room.height)];
    const quiet = getComputedStyle(this.plot.element).getPropertyValue("--quiet") || "#888";
    return (this.places = { room, domain, x, y, strokes: strokesOf(data, style, x, y, (value) => (1 - scalings.y.share(value)) * room.height, quiet) });
  }

  /** Return where places are drawn that were computed for another domain. */
  private movedFrom({ room: { width, height }, domain: [west, east, low, high] }: Places): Moved {
    const { x, y } = this.scalings(this.shown());
    return { left: x.share(west) * width, top: (1 - y.share(high)) * height, scaleX: x.share(east) - x.share(west), scaleY: y.share(high) - y.share(low) };
  }
}

/** Draw points at places: bars of errors, lines that join them, and glyphs. Pure. */
function strokesOf({ y: values, tint, errors }: PointsData, { shape, hasErrors, coloring }: PointsStyle, x: Float64Array, y: Float64Array, placeOf: (value: number) => number, none: string): Places["strokes"] {
  const found: Places["strokes"] = [];
  const plain = { opacity: 1, width: 1.5, hasLine: true, side: 0 };
  if (hasErrors && errors !== null) {
    const [bars, ends] = [new Float64Array(3 * errors.length).fill(NaN), new Float64Array(3 * errors.length).fill(NaN)];
    errors.forEach((error, at) => {
      const value = values[at] ?? NaN;
      const below = placeOf(value - error);
      ends.set([value - error <= 0 && Number.isNaN(below) ? FAR : below, placeOf(value + error)], 3 * at); // a logarithm has no 0
      bars.fill(x[at] ?? NaN, 3 * at, 3 * at + 2);
    });
    found.push({ ...plain, x: bars, y: ends, width: 1, opacity: 0.6 });
  }
  if (shape === "steps") {
    const [across, down] = [new Float64Array(2 * x.length), new Float64Array(2 * x.length)];
    x.forEach((place, at) => {
      across.set([place, x[at + 1] ?? place], 2 * at);
      down.fill(y[at] ?? NaN, 2 * at, 2 * at + 2);
    });
    found.push({ ...plain, x: across, y: down });
  } else if (shape !== "points") found.push({ ...plain, x, y });
  if (shape === "points" || shape === "both") {
    const colors = tint === null || coloring === null ? undefined : { shares: tint.map((value) => shareOf(value, coloring.limits[0], coloring.limits[1], coloring.norm)), map: coloring.map, none };
    found.push({ ...plain, x, y, hasLine: false, side: x.length > 20_000 ? 2 : x.length > 2_000 ? 4 : 7, tint: colors });
  }
  return found;
}
