/** A plane of an array as a surface in three dimensions: values are heights and colours. Drawn by H5Web. */

import { Acts } from "./acts.js";
import type { Api, ArrayNode } from "./api.js";
import type { Axes } from "./axes.js";
import { shareOf } from "./colors.js";
import { Contrast } from "./contrast.js";
import { button, el, fill } from "./dom.js";
import { elements } from "./elements.js";
import { Plot } from "./graphics.js";
import type { Relief, SurfaceLook } from "./h5web_surface.js";
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

/** How a surface is turned at first, in degrees. */
const TURN: [number, number] = [30, 35];
/** How keys turn it. */
const TURNS: Record<string, [number, number]> = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] };

export class Surface {
  private readonly plot: Plot<SurfaceLook>;
  private readonly stage: HTMLElement;
  /** The coordinates at the corners of the ground. */
  private readonly corners = Array.from({ length: 4 }, () => el("span", { class: "corner" }));
  private readonly contrast: Contrast;
  private readonly bar = el("div", { class: "controls" });
  private values: Float64Array | null = null;
  private columns = 1;
  private rows = 1;
  /** Heights of the values by limits and scale of the colours. */
  private relief: { of: string; relief: Relief } | null = null;
  private sources: Promise<Source[]> | null = null;
  private request: AbortController | null = null;
  private query = "";
  private size = 1;

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
    this.plot = new Plot((h5web, host, look) => h5web.drawSurface(host, look), () => this.look(), options.onError);
    this.stage = el("div", { class: "plots tall" }, this.plot.element, ...this.corners);
    fill(
      this.bar,
      el("div", { class: "group" }, button("Turn to the left", "↺", () => this.turn(15, 0)), button("Turn to the right", "↻", () => this.turn(-15, 0)), button("From above", "Above", () => this.setTurn([0, 90])), button("Turn back", "Fit", () => this.setTurn(TURN))),
      saveButton("Save the surface as a picture", "PNG", () => `${node.name}.png`, () => pngOf([this.stage, this.contrast.legend])),
      el("span", { class: "quiet" }, "Drag to turn."),
    );
  }

  get elements(): HTMLElement[] {
    return [this.contrast.controls, this.bar, el("div", { class: "stage" }, this.stage, this.contrast.legend)];
  }

  close(): void {
    this.request?.abort();
    this.plot.close();
    this.contrast.close();
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
      [this.values, this.columns, this.rows, this.relief] = [values, columns, rows, null];
    }
    this.plot.draw();
  }

  // -- turning -------------------------------------------------------------------------------------------------------

  private get angles(): [number, number] {
    return this.options.state.turn ?? TURN;
  }

  private setTurn([azimuth, elevation]: [number, number]): void {
    this.options.onChange({ turn: [Math.round(((azimuth % 360) + 360) % 360), Math.round(Math.min(90, Math.max(5, elevation)))] });
    this.plot.draw();
  }

  private turn(by: number, up: number): void {
    this.setTurn([this.angles[0] + by, this.angles[1] + up]);
  }

  private zoom(factor: number): void {
    this.size = Math.min(8, Math.max(0.3, this.size * factor));
    this.plot.draw();
  }

  /** Turn and zoom by the pointer and by keys; the canvas is one that H5Web has made. */
  private readonly listen = (canvas: HTMLCanvasElement): void => {
    new Acts(canvas, {
      description: "surface",
      grab: () => {
        const [azimuth, elevation] = this.angles;
        return (right, down) => this.setTurn([azimuth - right / 2, elevation + down / 2]);
      },
      zoom: (factor) => this.zoom(factor),
      fit: () => this.setTurn(TURN),
      key: ({ key }) => {
        const turn = TURNS[key];
        if (turn !== undefined) this.turn(...turn);
        return turn !== undefined;
      },
    });
  };

  // -- drawing -------------------------------------------------------------------------------------------------------

  private look(): SurfaceLook | null {
    const coloring = this.contrast.coloring();
    if (coloring === null || this.values === null) return null;
    const { limits: [low, high], map, norm } = coloring;
    const { node, columns, rows } = this;
    const of = `${low} ${high} ${norm}`;
    if (this.relief?.of !== of) this.relief = { of, relief: { values: Float32Array.from(this.values, (value) => shareOf(value, low, high, norm)), columns, rows } };
    return {
      relief: this.relief.relief,
      map,
      turn: this.angles,
      size: this.size,
      color: getComputedStyle(this.plot.element).color,
      label: `Surface of ${node.path === "" ? node.name : node.path}; arrow keys turn it, plus and minus zoom`,
      onCanvas: this.listen,
      onDrawn: this.placeCorners,
    };
  }

  /** Write the coordinates at the corners of the ground, where they are drawn. */
  private readonly placeCorners = (places: [number, number][]): void => {
    const { x, y } = this.options.plane();
    const last = (axis: number): number => Math.max(0, (this.node.shape[axis] ?? 1) - 1);
    const text = (axis: number, index: number): string => `${this.axes.nameOf(axis)} ${this.axes.labelOf(axis, index)}`;
    const texts = [[0, 0], [last(x), 0], [0, last(y)], [last(x), last(y)]].map(([atX = 0, atY = 0]) => `${text(x, atX)}, ${text(y, atY)}`);
    const { canvas } = this.plot;
    if (canvas !== undefined) canvas.dataset["drawn"] = `${this.columns},${this.rows},${this.angles.join(",")}`;
    this.corners.forEach((corner, at) => {
      const [left = 0, top = 0] = places[at] ?? [];
      corner.textContent = texts[at] ?? "";
      corner.style.transform = `translate(${left}px, ${top}px) translate(-50%, 0.2em)`;
    });
  };
}
