/** The data of one array: how it is shown, along which axes, at which indices. */

import type { Api, ArrayNode } from "./api.js";
import { Axes } from "./axes.js";
import { type Companions, readCompanions } from "./companions.js";
import { choice, el, fill } from "./dom.js";
import { isKnown, NOTATIONS } from "./elements.js";
import { channelAxis } from "./image.js";
import { LineControls, linePartOf, lineStyleOf } from "./line_controls.js";
import { Picture } from "./picture.js";
import { colorAxis, planeAxes } from "./plane_axes.js";
import { Scatter } from "./scatter.js";
import { Series } from "./series.js";
import type { State } from "./state.js";
import { Surface } from "./surface.js";
import { Table } from "./table.js";

const NAMES: Record<string, string> = { heatmap: "Heat map", surface: "Surface", channels: "Channels", rgb: "RGB", line: "Line", scatter: "Scatter", table: "Table" };

/** The views that suit an array, the one to begin with first. Pure. */
export function viewsOf(node: ArrayNode): string[] {
  const drawn = node.is_raw && isKnown(node.numpy) && node.shape.every((length) => length > 0);
  const axes = node.shape.length;
  if (!drawn || axes === 0) return ["table"];
  if (axes === 1) return ["line", "scatter", "table"];
  const views = ["heatmap", "surface", "line", "scatter", "table"];
  if (axes > 2 && channelAxis(node) !== undefined) return ["channels", ...views];
  return colorAxis(node) === undefined ? views : ["rgb", ...views];
}

export interface ArrayViewOptions {
  state: State;
  /** The state changed, and belongs into the URL. */
  onState: (state: State) => void;
  onError: (error: unknown) => void;
}

interface Shown {
  close(): void;
  /** Show the values at the indices of the state. */
  render(): void;
  /** Read the values again, because they changed. */
  refresh(): void;
  /** Return a URL whose answer changes with the values that are shown. */
  probe(): string | null;
}

export class ArrayView {
  readonly element = el("section", { class: "data", "aria-label": "Data" });
  private readonly readout = el("output", { class: "readout", "aria-live": "polite" }, " ");
  private readonly axes: Axes;
  private readonly state: State;
  private companions: Promise<Companions> | null = null;
  private shown: Shown | null = null;
  private timer = 0;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly options: ArrayViewOptions,
  ) {
    this.state = options.state;
    this.axes = new Axes(api, node);
  }

  /** Show the data; the element is in the page. */
  start(): void {
    this.build();
    void this.axes.read().then((found) => {
      if (found) this.build();
      this.element.dataset["coordinates"] = found ? "read" : "none";
    });
  }

  close(): void {
    clearInterval(this.timer);
    this.shown?.close();
    this.shown = null;
  }

  refresh(): void {
    this.shown?.refresh();
  }

  probe(): string | null {
    return this.shown?.probe() ?? null;
  }

  // -- what is chosen ------------------------------------------------------------------------------------------------

  private get view(): string {
    const views = viewsOf(this.node);
    return this.state.view !== undefined && views.includes(this.state.view) ? this.state.view : (views[0] ?? "table");
  }

  /** Return the axis whose indices are colours of one picture. */
  private get color(): number | undefined {
    if (this.view === "rgb") return colorAxis(this.node);
    return this.view === "channels" ? channelAxis(this.node) : undefined;
  }

  private get plane(): { x: number; y: number } {
    return planeAxes(this.node, this.state, this.color);
  }

  private get indices(): Record<number, number> {
    return Object.fromEntries(this.node.shape.map((length, axis) => [axis, Math.min(length - 1, Math.max(0, this.state.indices[axis] ?? 0))]));
  }

  /** Return the axes along which one index is shown. */
  private get free(): number[] {
    const { x, y } = this.plane;
    const used = ["line", "scatter"].includes(this.view) ? [x] : [x, y, this.color];
    return this.node.shape.map((_, axis) => axis).filter((axis) => !used.includes(axis));
  }

  private readonly change = (change: Partial<State>): void => {
    Object.assign(this.state, change);
    this.options.onState(this.state);
  };

  // -- building ------------------------------------------------------------------------------------------------------

  private build(): void {
    clearInterval(this.timer);
    this.shown?.close();
    this.readout.textContent = " ";
    const tabs = viewsOf(this.node).map((view) =>
      el("button", { type: "button", "aria-pressed": view === this.view ? "true" : "false", onclick: () => this.rebuild({ view }) }, NAMES[view] ?? view),
    );
    const bar = el("div", { class: "controls tabs" }, el("div", { class: "group", role: "group", "aria-label": "View" }, ...tabs), ...this.axisControls());
    const sliders = el("div", { class: "sliders" }, ...this.free.map((axis) => this.slider(axis)));
    const views: Record<string, () => [Shown, ...HTMLElement[]]> = { line: () => this.line(), scatter: () => this.scatter(), surface: () => this.surface(), table: () => this.table() };
    const [shown, ...parts] = (views[this.view] ?? (() => this.picture()))();
    fill(this.element, bar, sliders, ...parts, this.readout);
    this.shown = shown;
    this.render();
  }

  private rebuild(change: Partial<State>): void {
    this.change(change);
    this.build();
  }

  private axisControls(): HTMLElement[] {
    if (this.node.shape.length < 2) return [];
    const { x, y } = this.plane;
    const names = Object.fromEntries(this.node.shape.map((_, axis) => [axis, this.axes.nameOf(axis)]));
    const axisOf = (name: "x" | "y", chosen: number, label: string): HTMLElement =>
      el("label", {}, `${label} `, choice(label, names, String(chosen), (value) => {
        const axis = Number(value);
        const other = name === "x" ? "y" : "x";
        const before = this.plane;
        for (const member of ["box", "at", "along", "span", "domain", "against", "tint"] as const) delete this.state[member];
        this.rebuild({ [name]: axis, ...(before[other] === axis ? { [other]: before[name] } : {}) });
      }));
    if (["line", "scatter"].includes(this.view)) return [axisOf("x", x, "Along")];
    return this.view === "table" ? [axisOf("x", x, "Columns"), axisOf("y", y, "Rows")] : [axisOf("x", x, "Along x"), axisOf("y", y, "Along y")];
  }

  private slider(axis: number): HTMLElement {
    const length = this.node.shape[axis] ?? 1;
    const index = this.indices[axis] ?? 0;
    const name = this.axes.nameOf(axis);
    const slider = el("input", { type: "range", min: 0, max: length - 1, value: index, "aria-label": name, "data-axis": axis });
    const number = el("input", { type: "number", min: 0, max: length - 1, value: index, "aria-label": `${name}, index` });
    const label = el("span", { class: "label" });
    const describe = (at: number): void => {
      const text = this.axes.hasLabels(axis) ? this.axes.labelOf(axis, at) : "";
      label.textContent = text === "" || text === "NaT" || this.axes.unitOf(axis) === null ? text : `${text} ${this.axes.unitOf(axis)}`;
      slider.setAttribute("aria-valuetext", text === "" ? String(at) : `${at}, ${text}`);
    };
    const set = (to: number): void => {
      const at = Math.min(length - 1, Math.max(0, Math.round(to) || 0));
      slider.value = number.value = String(at);
      describe(at);
      this.change({ indices: { ...this.state.indices, [axis]: at } });
      this.render();
    };
    slider.addEventListener("input", () => set(Number(slider.value)));
    number.addEventListener("change", () => set(Number(number.value)));
    describe(index);
    const play = el("button", { type: "button", class: "play", "aria-label": `Play along ${name}`, "aria-pressed": "false", title: `Play along ${name}` }, "▶");
    play.addEventListener("click", () => this.play(play, () => set((Number(slider.value) + 1) % length)));
    return el("div", { class: "slider" }, el("span", { class: "dimension" }, name), play, slider, number, el("span", { class: "quiet" }, `of ${length}`), label);
  }

  /** Step along a slider until the button is pressed again; a step waits for the picture before it. */
  private play(button: HTMLElement, step: () => void): void {
    const isPlaying = button.getAttribute("aria-pressed") === "true";
    clearInterval(this.timer);
    for (const other of this.element.querySelectorAll<HTMLElement>(".play")) {
      other.setAttribute("aria-pressed", "false");
      other.textContent = "▶";
    }
    if (isPlaying) return;
    button.setAttribute("aria-pressed", "true");
    button.textContent = "❚❚";
    this.timer = window.setInterval(() => {
      if ((this.element.querySelector<HTMLElement>("canvas.plot")?.dataset["pending"] ?? "0") === "0") step();
    }, 250);
  }

  // -- the views -----------------------------------------------------------------------------------------------------

  private render(): void {
    this.element.parentElement?.querySelector(".error.data")?.remove();
    this.shown?.render();
  }

  private picture(): [Shown, ...HTMLElement[]] {
    const picture = new Picture(this.api, this.node, this.axes, {
      state: this.state,
      plane: () => ({ ...this.plane, indices: this.indices, ...(this.color === undefined ? {} : { color: this.color }) }),
      free: this.free,
      isChannels: this.view === "channels",
      onChange: this.change,
      onIndex: (axis, index) => this.rebuild({ indices: { ...this.state.indices, [axis]: index } }),
      onReadout: (text) => (this.readout.textContent = text),
      onError: this.options.onError,
    });
    return [picture, ...picture.elements];
  }

  private line(): [Shown, ...HTMLElement[]] {
    const { x } = this.plane;
    const { state } = this;
    let companions: Companions = { errors: null, siblings: [] };
    const series = new Series(this.api, this.node, this.axes, {
      part: () => linePartOf(state),
      style: () => lineStyleOf(state),
      beside: () => ({ errors: state.errors === false ? null : companions.errors, also: state.also ?? [] }),
      span: state.span,
      onSpan: (span) => {
        if (span === null) delete state.span;
        this.change(span === null ? {} : { span });
      },
      onCursor: (text) => (this.readout.textContent = text),
      onPick: () => undefined,
      onError: this.options.onError,
    });
    const render = (): void => series.show(this.indices, x, null);
    const refresh = (): void => {
      series.refresh();
      render();
    };
    const controls = new LineControls({
      node: this.node, along: x, state,
      onStyle: (change) => {
        this.change(change);
        series.restyle();
      },
      onRead: (change) => {
        this.change(change);
        controls.show(companions);
        series.restyle();
        refresh();
      },
    });
    void (this.companions ??= readCompanions(this.api, this.node)).then((found) => {
      if (!controls.element.isConnected) return;
      companions = found;
      controls.show(found);
      if (found.errors !== null || state.also !== undefined) refresh();
    });
    return [{ close: () => series.close(), render, refresh, probe: () => series.probe() }, controls.element, series.element];
  }

  private scatter(): [Shown, ...HTMLElement[]] {
    const scatter = new Scatter(this.api, this.node, this.axes, {
      state: this.state,
      along: this.plane.x,
      indices: () => this.indices,
      companions: (this.companions ??= readCompanions(this.api, this.node)),
      onChange: this.change,
      onReadout: (text) => (this.readout.textContent = text),
      onError: this.options.onError,
    });
    return [scatter, ...scatter.elements];
  }

  private surface(): [Shown, ...HTMLElement[]] {
    const surface = new Surface(this.api, this.node, this.axes, {
      state: this.state,
      plane: () => ({ ...this.plane, indices: this.indices }),
      onChange: this.change,
      onError: this.options.onError,
    });
    return [surface, ...surface.elements];
  }

  private table(): [Shown, ...HTMLElement[]] {
    const count = this.node.shape.length;
    const { x, y } = this.plane;
    const rows = count === 0 ? undefined : count === 1 ? 0 : y;
    const table = new Table(this.api, this.node, {
      rows, columns: count > 1 ? x : undefined, indices: () => this.indices, labels: (axis, index) => this.axes.placeOf(axis, index), onError: this.options.onError,
      notation: () => (this.state.notation !== undefined && this.state.notation in NOTATIONS ? this.state.notation : "exact"),
      onNotation: (notation) => {
        this.change({ notation });
        void table.load();
      },
    });
    const render = (): void => void table.load();
    return [{ close: () => table.close(), render, refresh: render, probe: () => table.probe() }, table.element];
  }
}
