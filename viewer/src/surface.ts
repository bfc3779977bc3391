/** A plane of an array as a surface in three dimensions: values are heights and colours. Drawn on a plain canvas, far parts first. */

import type { Api, ArrayNode } from "./api.js";
import type { Axes } from "./axes.js";
import { drawTitles, MARGIN } from "./axis_drawing.js";
import { colorTable, shareOf } from "./colors.js";
import { Contrast } from "./contrast.js";
import { button, el, fill } from "./dom.js";
import { elements } from "./elements.js";
import type { Coloring } from "./paint.js";
import { overview, type Plane, type Source, stridesOf, tileQuery } from "./plane.js";
import { pngOf, saveButton } from "./save.js";
import { numbersOf } from "./series.js";
import { readSources } from "./sources.js";
import type { State } from "./state.js";

export interface SurfaceOptions {
  state: State;
  /** The plane that is shown now, without its sources. */
  plane: () => Omit<Plane, "sources">;
  onChange: (change: Partial<State>) => void;
  onError: (error: unknown) => void;
}

/** Numbers in rows, the first row first. */
export interface Relief {
  values: Float64Array;
  columns: number;
  rows: number;
}

/** Corners along each side that are drawn. */
const MAX_SIDE = 96;
const TURN: [number, number] = [30, 35];
/** Height of the largest value, as a share of the longer side. */
const HEIGHT = 0.4;

/** Leave out rows and columns of numbers, evenly, until neither side has more than `most`; the first ones stay. Pure. */
export function thinned({ values, columns, rows }: Relief, most: number): Relief {
  const [stepX, stepY] = [Math.ceil(columns / most), Math.ceil(rows / most)];
  const [width, height] = [Math.ceil(columns / stepX), Math.ceil(rows / stepY)];
  return { columns: width, rows: height, values: Float64Array.from({ length: width * height }, (_, at) => values[Math.floor(at / width) * stepY * columns + (at % width) * stepX] ?? NaN) };
}

export interface Projection {
  /** Return the place on the screen of a corner: x and y from −0.5 to 0.5 on the ground, z above it. */
  place(x: number, y: number, z: number): [number, number];
  /** Whether larger x, and larger y, are nearer. */
  isNearX: boolean;
  isNearY: boolean;
}

/** Make the view of the ground from an angle about the axis upwards, and one above the ground, in degrees, without perspective. Pure. */
export function projectionOf([azimuth, elevation]: [number, number]): Projection {
  const [turn, lift] = [(azimuth * Math.PI) / 180, (elevation * Math.PI) / 180];
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  return {
    place: (x, y, z) => {
      const [right, near] = [x * cos - y * sin, x * sin + y * cos];
      return [right, near * Math.sin(lift) - z * Math.cos(lift)];
    },
    isNearX: sin > 0,
    isNearY: cos > 0,
  };
}

export class Surface {
  readonly canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "surface", class: "plot" });
  private readonly contrast: Contrast;
  private readonly observer: ResizeObserver;
  private readonly bar = el("div", { class: "controls" });
  private relief: Relief | null = null;
  private sources: Promise<Source[]> | null = null;
  private request: AbortController | null = null;
  private query = "";
  private size = 1;
  private frame = 0;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly axes: Axes,
    private readonly options: SurfaceOptions,
  ) {
    this.contrast = new Contrast({ state: options.state, isComplex: /c(8|16)$/.test(node.numpy), units: node.units, onChange: () => {
      options.onChange({});
      this.render();
    } });
    this.canvas.setAttribute("aria-label", `Surface of ${node.path === "" ? node.name : node.path}; arrow keys turn it, plus and minus zoom`);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.listen();
    fill(
      this.bar,
      el("div", { class: "group" }, button("Turn to the left", "↺", () => this.turn(15, 0)), button("Turn to the right", "↻", () => this.turn(-15, 0)), button("From above", "Above", () => this.setTurn([0, 90])), button("Turn back", "Fit", () => this.setTurn(TURN))),
      saveButton("Save the surface as a picture", "PNG", () => `${node.name}.png`, () => pngOf([this.canvas, this.contrast.legend])),
      el("span", { class: "quiet" }, "Drag to turn."),
    );
  }

  get elements(): HTMLElement[] {
    return [this.contrast.controls, this.bar, el("div", { class: "stage" }, el("div", { class: "plots tall" }, this.canvas), this.contrast.legend)];
  }

  close(): void {
    this.request?.abort();
    this.observer.disconnect();
    this.contrast.close();
    cancelAnimationFrame(this.frame);
  }

  refresh(): void {
    this.query = "";
    this.render();
  }

  probe(): string | null {
    return this.query === "" ? null : this.query;
  }

  render(): void {
    void this.read().catch(this.options.onError);
  }

  /** Read the plane, from the coarsest level and at steps, where it was not read yet. */
  private async read(): Promise<void> {
    this.sources ??= readSources(this.api, this.node, this.options.plane());
    const plane: Plane = { ...this.options.plane(), sources: await this.sources };
    const id = overview(plane);
    const path = plane.sources[id.source]?.node.path ?? "";
    const query = this.api.url(path, "raw", `${tileQuery(plane, id)}#${this.contrast.part}`);
    if (query !== this.query) {
      this.request?.abort();
      const request = new AbortController();
      this.request = request;
      const raw = await this.api.raw(path, tileQuery(plane, id), request.signal).catch((error: unknown) => {
        if (request.signal.aborted) return null;
        throw error;
      });
      if (raw === null || request.signal.aborted) return;
      this.query = query;
      const all = numbersOf(elements(raw.bytes, raw.dtype), this.node, this.contrast.part);
      const { x: strideX, y: strideY } = stridesOf(plane, raw.shape);
      const [columns, rows] = plane.x > plane.y ? [raw.shape.at(-1) ?? 1, raw.shape[0] ?? 1] : [raw.shape[0] ?? 1, raw.shape.at(-1) ?? 1];
      const values = Float64Array.from({ length: columns * rows }, (_, at) => all[Math.floor(at / columns) * strideY + (at % columns) * strideX] ?? NaN);
      this.contrast.setValues(values);
      this.relief = thinned({ values, columns, rows }, MAX_SIDE);
    }
    this.draw();
  }

  // -- turning -------------------------------------------------------------------------------------------------------

  private get angles(): [number, number] {
    return this.options.state.turn ?? TURN;
  }

  private setTurn([azimuth, elevation]: [number, number]): void {
    this.options.onChange({ turn: [Math.round(((azimuth % 360) + 360) % 360), Math.round(Math.min(90, Math.max(5, elevation)))] });
    this.draw();
  }

  private turn(by: number, up: number): void {
    this.setTurn([this.angles[0] + by, this.angles[1] + up]);
  }

  private zoom(factor: number): void {
    this.size = Math.min(8, Math.max(0.3, this.size * factor));
    this.draw();
  }

  private listen(): void {
    const { canvas } = this;
    let drag: { x: number; y: number; from: [number, number] } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, from: this.angles };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag !== null && event.buttons === 1) this.setTurn([drag.from[0] - (event.clientX - drag.x) / 2, drag.from[1] + (event.clientY - drag.y) / 2]);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (drag = null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 300));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.setTurn(TURN));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const turns: Record<string, [number, number]> = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] };
    const turn = turns[event.key];
    if (turn !== undefined) this.turn(...turn);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(1 / 1.25);
    else if (event.key === "0") this.setTurn(TURN);
    else return;
    event.preventDefault();
  }

  // -- drawing -------------------------------------------------------------------------------------------------------

  private draw(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const context = this.canvas.getContext("2d");
    const coloring = this.contrast.coloring();
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (context === null || coloring === null || this.relief === null || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const projection = projectionOf(this.angles);
    const scale = Math.min((width - MARGIN.left) / 1.5, (height - MARGIN.bottom) / 1.2) * this.size;
    const screen = (x: number, y: number, z: number): [number, number] => {
      const [right, down] = projection.place(x, y, z);
      return [width / 2 + right * scale, height * 0.55 + down * scale];
    };
    context.lineWidth = 1;
    paintRelief(context, this.relief, coloring, projection, screen);
    this.paintGround(context, screen, this.relief);
    const plane = this.options.plane();
    const frame = { left: MARGIN.left, top: MARGIN.top, width: width - MARGIN.left, height: height - MARGIN.bottom - MARGIN.top };
    drawTitles(context, frame, `${this.axes.nameOf(plane.x)} × ${this.axes.nameOf(plane.y)}`, this.node.label ?? this.node.name);
    this.canvas.dataset["drawn"] = `${this.relief.columns},${this.relief.rows},${this.angles.join(",")}`;
  }

  /** Draw the edges of the ground, with the coordinates at their ends. */
  private paintGround(context: CanvasRenderingContext2D, screen: (x: number, y: number, z: number) => [number, number], { columns, rows }: Relief): void {
    const [right, near] = [columns, rows].map((count) => (count - 1) / 2 / (Math.max(columns, rows, 2) - 1)) as [number, number];
    const { x, y } = this.options.plane();
    const last = (axis: number): number => Math.max(0, (this.node.shape[axis] ?? 1) - 1);
    context.strokeStyle = context.fillStyle = getComputedStyle(this.canvas).color;
    context.globalAlpha = 0.7;
    context.beginPath();
    context.moveTo(...screen(-right, -near, 0));
    for (const [toX, toY] of [[right, -near], [right, near], [-right, near], [-right, -near]] as const) context.lineTo(...screen(toX, toY, 0));
    context.stroke();
    context.globalAlpha = 1;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const mark = (text: string, [left, top]: [number, number]): void => context.fillText(text, left, top, 160);
    mark(`${this.axes.nameOf(x)} ${this.axes.labelOf(x, 0)}`, screen(-right, near + 0.07, 0));
    mark(this.axes.labelOf(x, last(x)), screen(right, near + 0.07, 0));
    mark(`${this.axes.nameOf(y)} ${this.axes.labelOf(y, 0)}`, screen(right + 0.1, -near, 0));
    mark(this.axes.labelOf(y, last(y)), screen(right + 0.1, near, 0));
  }
}

/** Draw the faces between neighbours, the farthest first; a face with a corner that is no number is left out. */
function paintRelief(context: CanvasRenderingContext2D, { values, columns, rows }: Relief, { map, limits: [low, high], norm }: Coloring, { isNearX, isNearY }: Projection, screen: (x: number, y: number, z: number) => [number, number]): void {
  const table = colorTable(map);
  const longer = Math.max(columns, rows, 2) - 1;
  const shares = values.map((value) => shareOf(value, low, high, norm));
  const corner = (column: number, row: number): [number, number] =>
    screen((column - (columns - 1) / 2) / longer, (row - (rows - 1) / 2) / longer, HEIGHT * (shares[row * columns + column] ?? NaN));
  for (let i = 0; i + 1 < rows; i++) {
    const row = isNearY ? i : rows - 2 - i;
    for (let j = 0; j + 1 < columns; j++) {
      const column = isNearX ? j : columns - 2 - j;
      const corners = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]] as const;
      const height = corners.reduce((sum, [x, y]) => sum + (shares[y * columns + x] ?? NaN), 0) / 4;
      if (Number.isNaN(height)) continue;
      const entry = 3 * Math.round(255 * height);
      context.strokeStyle = context.fillStyle = `rgb(${table[entry]}, ${table[entry + 1]}, ${table[entry + 2]})`;
      context.beginPath();
      corners.forEach(([x, y], at) => {
        const place = corner(x, y);
        if (at === 0) context.moveTo(...place);
        else context.lineTo(...place);
      });
      context.closePath();
      context.fill();
      context.stroke(); // covers the seam between faces
    }
  }
}
