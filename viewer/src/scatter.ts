/** Elements along an axis of an array as points, against numbers of another array, and in colours of a third. */

import { type Api, type ArrayNode, queryOf } from "./api.js";
import type { Axes } from "./axes.js";
import { type Companions, fitting, readArray } from "./companions.js";
import { Contrast } from "./contrast.js";
import { button, check, choice, el, fill } from "./dom.js";
import { elements, shortText } from "./elements.js";
import { SHAPES, type Span } from "./line.js";
import { lastOf, lineStyleOf } from "./line_controls.js";
import { Points, type PointsData, type PointsStyle } from "./points.js";
import { csvFile, pngOf, saveButton } from "./save.js";
import { SCALES } from "./scales.js";
import { numbersOf, titleOf } from "./series.js";
import type { State } from "./state.js";

/** Elements that are read, and bytes of the chunks that they are in. */
const MAX_POINTS = 200_000;
const MAX_NBYTES = 2 ** 28;
/** Columns of an array that are offered. */
const MAX_COLUMNS = 16;

export interface ScatterOptions {
  state: State;
  along: number;
  indices: () => Record<number, number>;
  companions: Promise<Companions>;
  onChange: (change: Partial<State>) => void;
  onReadout: (text: string) => void;
  onError: (error: unknown) => void;
}

/** Elements that are read: whole chunks from the beginning of a span, so that they are the same in each array. */
export interface Window {
  span: Span;
  step: number;
  /** Whether the span goes on. */
  isCut: boolean;
}

/** Choose the elements of a span that are read. Pure. */
export function windowOf(node: ArrayNode, along: number, [from, to]: Span): Window {
  const size = node.grid.chunks?.[along] ?? Math.max(1, Math.ceil((node.shape[along] ?? 1) / (node.nchunks[along] ?? 1)));
  const chunk = (node.grid.chunks ?? [1]).reduce((product, one) => product * one, node.itemsize);
  const end = (Math.floor(from / size) + Math.max(1, Math.floor(MAX_NBYTES / chunk))) * size;
  const stop = Math.min(to, end);
  return { span: [from, stop], step: Math.max(1, Math.ceil((stop - from) / MAX_POINTS)), isCut: stop < to };
}

/** What points can be drawn against, as the state names it: the text of each. */
export function choicesOf(node: ArrayNode, along: number, paths: string[], coordinate: string | null): Record<string, string> {
  const found: Record<string, string> = { "": "index" };
  if (coordinate !== null && coordinate !== node.path) found[coordinate] = lastOf(coordinate);
  for (const path of paths) found[path] = lastOf(path);
  node.shape.forEach((length, axis) => {
    if (axis === along || length > MAX_COLUMNS) return;
    const name = node.dimensions[axis] ?? `dim_${axis}`;
    for (let index = 0; index < length; index++) found[`/${axis}=${index}`] = `${node.name}, ${name} ${index}`; // no path begins with a slash
  });
  return found;
}

export class Scatter {
  private readonly controls = el("div", { class: "controls" });
  private readonly note = el("span", { class: "quiet" });
  private readonly plot = el("div", { class: "plots tall" });
  private readonly contrast: Contrast;
  private points: Points | null = null;
  private data: PointsData | null = null;
  private window: Window;
  private companions: Companions = { errors: null, siblings: [] };
  private request: AbortController | null = null;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly axes: Axes,
    private readonly options: ScatterOptions,
  ) {
    const { state, along } = options;
    this.window = windowOf(node, along, state.span ?? [0, node.shape[along] ?? 1]);
    this.contrast = new Contrast({ state, isComplex: false, units: null, onChange: () => {
      options.onChange({});
      this.points?.setStyle(this.style());
    } });
    void options.companions.then((found) => {
      this.companions = found;
      if (!this.plot.isConnected) return;
      this.fillControls();
      if (found.errors !== null) this.render();
    });
    this.fillControls();
  }

  get elements(): HTMLElement[] {
    return [this.controls, this.contrast.controls, el("div", { class: "stage" }, this.plot, this.contrast.legend)];
  }

  close(): void {
    this.request?.abort();
    this.points?.close();
    this.contrast.close();
  }

  refresh(): void {
    this.render();
  }

  probe(): string {
    return this.api.url(this.node.path, "raw", this.query(""));
  }

  render(): void {
    void this.read().catch(this.options.onError);
  }

  // -- what is chosen ------------------------------------------------------------------------------------------------

  /** Return what x is: as the state says, else the coordinate along the axis. */
  private get against(): string {
    return this.options.state.against ?? this.coordinate ?? "";
  }

  private get coordinate(): string | null {
    const path = this.node.coordinates[this.options.along] ?? null;
    return path === this.node.path ? null : path;
  }

  private style(): PointsStyle {
    const { state } = this.options;
    const { scale, hasErrors, hasGuides } = lineStyleOf(state);
    const shape = state.shape !== undefined && state.shape in SHAPES ? state.shape : "points";
    const scaleX = state.scalex !== undefined && state.scalex in SCALES ? state.scalex : "linear";
    return { scaleX, scaleY: scale, shape, hasErrors, hasGuides, coloring: this.data?.tint == null ? null : this.contrast.coloring() };
  }

  // -- reading -------------------------------------------------------------------------------------------------------

  /** Write the query of elements: of this array, of one of the same shape, or of this array at another index. */
  private query(what: string): string {
    const { along } = this.options;
    const { span: [from, to], step } = this.window;
    const other = /^\/(\d+)=(\d+)$/.exec(what);
    const indices: Record<number, number> = { ...this.options.indices(), ...(other === null ? {} : { [Number(other[1])]: Number(other[2]) }) };
    return queryOf(this.node, { ...indices, [along]: `${from}:${to}:${step}` });
  }

  /** Read the numbers of what is named in the state, with the title of their axis. */
  private async numbers(what: string, signal: AbortSignal): Promise<{ values: Float64Array; title: string }> {
    const { span: [from, to], step } = this.window;
    if (what.startsWith("/")) {
      const text = choicesOf(this.node, this.options.along, [], null)[what] ?? this.node.name;
      return { values: await this.readNumbers(this.node, this.query(what), signal), title: text };
    }
    const { along } = this.options;
    const line = (value: (index: number) => number): Float64Array => Float64Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, at) => value(from + at * step));
    const labels = what === this.coordinate ? this.axes.numbers(along) : null;
    if (labels !== null) return { values: line((index) => labels[index] ?? NaN), title: this.axes.titleOf(along) };
    const node = what === "" || this.node.path === "" ? null : await readArray(this.api, what);
    if (node === null) return { values: line((index) => index), title: `${this.axes.nameOf(along)} (index)` };
    const isLine = node.shape.length === 1 && this.node.shape.length > 1;
    return { values: await this.readNumbers(node, isLine ? `0=${from}:${to}:${step}` : this.query(what), signal), title: titleOf(node) };
  }

  private async readNumbers(node: ArrayNode, query: string, signal: AbortSignal): Promise<Float64Array> {
    const raw = await this.api.raw(node.path, query, signal);
    return numbersOf(elements(raw.bytes, raw.dtype), node, "abs");
  }

  private async read(): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const { signal } = request;
    const { tint } = this.options.state;
    const { errors } = this.companions;
    try {
      const [x, y, colors, bars] = await Promise.all([
        this.numbers(this.against, signal),
        this.readNumbers(this.node, this.query(""), signal),
        tint === undefined ? null : this.numbers(tint, signal),
        errors === null ? null : this.readNumbers(errors, this.query(""), signal),
      ]);
      if (signal.aborted) return;
      this.data = { x: x.values, y, tint: colors?.values ?? null, errors: bars, titleX: x.title, titleY: titleOf(this.node) };
      this.show(this.data, colors?.title ?? null);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  private show(data: PointsData, tint: string | null): void {
    const hasColors = data.tint !== null;
    this.contrast.controls.hidden = this.contrast.legend.hidden = !hasColors;
    if (data.tint !== null) this.contrast.setValues(data.tint);
    if (tint !== null) this.contrast.legend.title = tint;
    const { span: [from, to], step, isCut } = this.window;
    const count = Math.max(0, Math.ceil((to - from) / step));
    this.note.textContent = step === 1 && !isCut ? `${count} points` : `${count} points, of elements ${from} to ${to - 1}${step > 1 ? `, every ${step}th` : ""}${isCut ? "; zoom the line to see points of others" : ""}`;
    if (this.points !== null) {
      this.points.setStyle(this.style());
      this.points.setData(data);
      return;
    }
    this.points = new Points(data, this.style(), {
      label: `Points of ${this.node.path === "" ? this.node.name : this.node.path}; arrow keys move from point to point, plus and minus zoom`,
      domain: this.options.state.domain ?? null,
      onCursor: (at) => this.options.onReadout(at === null ? " " : this.textOf(at)),
      onDomain: (domain) => {
        if (domain === null) delete this.options.state.domain;
        this.options.onChange(domain === null ? {} : { domain });
      },
      onError: this.options.onError,
    });
    fill(this.plot, this.points.plot.element);
  }

  /** Write a point: its index, x and y, and what its colour and bar are of. */
  private textOf(at: number): string {
    if (this.data === null) return " ";
    const { x, y, tint, errors, titleX, titleY } = this.data;
    const index = this.window.span[0] + at * this.window.step;
    const error = errors === null || Number.isNaN(errors[at] ?? NaN) ? "" : ` ± ${shortText(errors[at] ?? NaN)}`;
    const color = tint === null ? "" : `, colour ${String(tint[at])}`;
    return `${this.axes.nameOf(this.options.along)} ${this.axes.placeOf(this.options.along, index)}: ${titleX} ${String(x[at])}, ${titleY} ${String(y[at])}${error}${color}`;
  }

  // -- controls ------------------------------------------------------------------------------------------------------

  private fillControls(): void {
    const { along } = this.options;
    const style = this.style();
    const choices = choicesOf(this.node, along, fitting(this.node, along, this.companions), this.coordinate);
    const axis = (scale: string, name: "scalex" | "scaley", label: string): HTMLElement => choice(label, SCALES, scale, (value) => this.restyle({ [name]: value }));
    fill(
      this.controls,
      el("label", {}, "Against ", choice("Against", choices, this.against, (against) => this.take({ against }))),
      el("label", {}, "x ", axis(style.scaleX, "scalex", "Scale of x")),
      el("label", {}, "y ", axis(style.scaleY, "scaley", "Scale of y")),
      el("label", {}, "Colour ", choice("What colours are of", { "-": "none", ...choices }, this.options.state.tint ?? "-", (tint) => this.takeTint(tint))),
      choice("How points are joined", { points: "points", both: "joined points", line: "joined", steps: "steps" }, style.shape, (shape) => this.restyle({ shape })),
      check("Guides", style.hasGuides, (guides) => this.restyle({ guides })),
      this.companions.errors === null ? null : check(`Errors (${this.companions.errors.name})`, style.hasErrors, (errors) => this.restyle({ errors })),
      el("div", { class: "group" }, button("Zoom in", "+", () => this.points?.zoom(1.5)), button("Zoom out", "−", () => this.points?.zoom(1 / 1.5)), button("Show everything", "Fit", () => this.points?.fit())),
      el("div", { class: "group" },
        saveButton("Save the points as a picture", "PNG", () => `${this.node.name}.png`, () => pngOf([this.points?.plot.element, this.data?.tint == null ? undefined : this.contrast.legend])),
        saveButton("Save the numbers of the points", "CSV", () => `${this.node.name}.csv`, () => csvFile(this.columns()))),
      this.note,
    );
  }

  /** Draw in another style. */
  private restyle(change: Partial<State>): void {
    this.options.onChange(change);
    this.points?.setStyle(this.style());
  }

  /** Draw other numbers, all of them. */
  private take(change: Partial<State>): void {
    this.options.onChange(change);
    this.points?.fit();
    this.render();
  }

  private takeTint(tint: string): void {
    if (tint === "-") delete this.options.state.tint;
    this.options.onChange(tint === "-" ? {} : { tint });
    this.render();
  }

  private columns(): { name: string; cells: number[] }[] {
    if (this.data === null) return [];
    const { x, y, tint, errors, titleX, titleY } = this.data;
    const index = Array.from(x, (_, at) => this.window.span[0] + at * this.window.step);
    const column = (name: string, values: Float64Array | null): { name: string; cells: number[] }[] => (values === null ? [] : [{ name, cells: [...values] }]);
    return [{ name: "index", cells: index }, ...column(titleX, x), ...column(titleY, y), ...column("error", errors), ...column("colour", tint)];
  }
}
