/** The data of one array: how it is shown, along which axes, at which indices, in which colours. */

import type { Api, ArrayNode } from "./api.js";
import { MAP_NAMES } from "./colors.js";
import { el, fill } from "./dom.js";
import { type Element, elements, isKnown, shortText, textOf, unpack } from "./elements.js";
import { type Cursor, Heatmap } from "./heatmap.js";
import { Line } from "./line.js";
import type { Plane, Source } from "./plane.js";
import type { State } from "./state.js";
import { Table } from "./table.js";

const MAX_LINE = 4_000_000;
const MAX_LABELS = 20_000;

/** The views that suit an array, the one to begin with first. Pure. */
export function viewsOf(node: ArrayNode): string[] {
  const drawn = node.is_raw && isKnown(node.numpy) && node.shape.every((length) => length > 0);
  const axes = node.shape.length;
  if (!drawn || axes === 0) return ["table"];
  const views = axes === 1 ? ["line", "table"] : ["heatmap", "line", "table"];
  if (colorAxis(node) === undefined) return views;
  return ["rgb", ...views];
}

/** Return the axis of red, green and blue, if the elements are bytes and the last (or first) axis has three or four. Pure. */
export function colorAxis(node: ArrayNode): number | undefined {
  const axes = node.shape.length;
  if (axes < 3 || node.numpy !== "|u1") return undefined;
  const isColor = (axis: number): boolean => node.shape[axis] === 3 || node.shape[axis] === 4;
  if (isColor(axes - 1)) return axes - 1;
  return isColor(axes - 3) && /^(c|channel|band|rgb)/i.test(node.dimensions[axes - 3] ?? "") ? axes - 3 : undefined;
}

interface Shown {
  close(): void;
}

export class ArrayView {
  readonly element = el("section", { class: "data", "aria-label": "Data" });
  private readonly picture = el("div", { class: "picture" });
  private readonly readout = el("output", { class: "readout", "aria-live": "polite" }, " ");
  private shown: Shown | null = null;
  private heatmap: Heatmap | null = null;
  private labels: (unknown[] | null)[] = [];
  private sources: Source[] | null = null;
  private limits: [number, number] | null = null;
  private readonly low = el("input", { type: "text", inputmode: "decimal", size: 9, "aria-label": "Value of the first colour" });
  private readonly high = el("input", { type: "text", inputmode: "decimal", size: 9, "aria-label": "Value of the last colour" });

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly state: State,
    private readonly replace: (state: State) => void,
    private readonly onError: (error: unknown) => void,
  ) {
    if (state.low !== undefined && state.high !== undefined) this.limits = [state.low, state.high];
  }

  /** Show the data; the element is in the page. */
  start(): void {
    this.build();
    void this.readLabels();
  }

  close(): void {
    this.shown?.close();
    this.shown = null;
    this.heatmap = null;
  }

  // -- what is chosen ------------------------------------------------------------------------------------------------

  private get view(): string {
    const views = viewsOf(this.node);
    return this.state.view !== undefined && views.includes(this.state.view) ? this.state.view : (views[0] ?? "table");
  }

  /** Return the axes along x and y: those of the state, else the last two that are not the colours'. */
  private get axes(): { x: number; y: number } {
    const color = this.view === "rgb" ? colorAxis(this.node) : undefined;
    const free = this.node.shape.map((_, axis) => axis).filter((axis) => axis !== color);
    const pyramid = this.node.pyramid?.axes.map((axis) => axis.name) ?? [];
    const named = (name: string): number | undefined => (pyramid.length === this.node.shape.length && pyramid.includes(name) ? pyramid.indexOf(name) : undefined);
    let x = this.state.x !== undefined && free.includes(this.state.x) ? this.state.x : (named("x") ?? free.at(-1) ?? 0);
    let y = this.state.y !== undefined && free.includes(this.state.y) ? this.state.y : (named("y") ?? free.at(-2) ?? 0);
    if (x === y) {
      if (this.state.x !== undefined) y = free.filter((axis) => axis !== x).at(-1) ?? x;
      else x = free.filter((axis) => axis !== y).at(-1) ?? y;
    }
    return { x, y };
  }

  private get indices(): Record<number, number> {
    const found: Record<number, number> = {};
    this.node.shape.forEach((length, axis) => {
      found[axis] = Math.min(length - 1, Math.max(0, this.state.indices[axis] ?? 0));
    });
    return found;
  }

  private nameOf(axis: number): string {
    return this.node.dimensions[axis] ?? this.pyramidAxis(axis) ?? `dim_${axis}`;
  }

  private pyramidAxis(axis: number): string | null {
    const axes = this.node.pyramid?.axes ?? [];
    return axes.length === this.node.shape.length ? (axes[axis]?.name ?? null) : null;
  }

  private labelOf(axis: number, index: number): string {
    const label = this.labels[axis]?.[index];
    if (label === undefined || label === null) return String(index);
    if (typeof label === "number") return shortText(label);
    return String(label).replace(/\.0+$/, "").replace(/T00:00(:00)?$/, "");
  }

  /** Write an index, with its coordinate where there is one. */
  private placeOf(axis: number, index: number): string {
    const label = this.labels[axis]?.[index];
    return label === undefined || label === null ? String(index) : `${index} (${this.labelOf(axis, index)})`;
  }

  private change(change: Partial<State>): void {
    Object.assign(this.state, change);
    this.replace({ ...this.state });
  }

  private async readLabels(): Promise<void> {
    await Promise.all(
      this.node.coordinates.map(async (path, axis) => {
        if (path === null || path === this.node.path || (this.node.shape[axis] ?? 0) > MAX_LABELS) return;
        try {
          this.labels[axis] = (await this.api.slice(path, "")).data as unknown[];
        } catch {
          this.labels[axis] = null; // indices are shown instead
        }
      }),
    );
    if (this.labels.some((one) => one)) {
      this.updateSliders();
      this.heatmap?.draw();
    }
  }

  // -- building ------------------------------------------------------------------------------------------------------

  private build(): void {
    const views = viewsOf(this.node);
    const names: Record<string, string> = { heatmap: "Heat map", rgb: "RGB", line: "Line", table: "Table" };
    const tabs = el(
      "div",
      { class: "tabs", role: "group", "aria-label": "View" },
      ...views.map((view) =>
        el("button", { type: "button", "aria-pressed": view === this.view ? "true" : "false", onclick: () => {
          this.change({ view });
          this.build();
        } }, names[view] ?? view),
      ),
    );
    fill(this.element, tabs, this.axisControls(), this.sliders(), this.view === "heatmap" || this.view === "rgb" ? this.colorControls() : null, this.picture, this.readout);
    this.render();
  }

  private axisControls(): HTMLElement | null {
    const count = this.node.shape.length;
    if (count < 2) return null;
    const { x, y } = this.axes;
    const choice = (name: "x" | "y", chosen: number, label: string): HTMLElement => {
      const select = el("select", {}, ...this.node.shape.map((_, axis) => el("option", { value: axis, selected: axis === chosen }, this.nameOf(axis))));
      select.addEventListener("change", () => {
        const axis = Number(select.value);
        const other = name === "x" ? "y" : "x";
        const before = this.axes;
        const change: Partial<State> = { [name]: axis };
        if (before[other] === axis) change[other] = before[name];
        delete this.state.box;
        this.change(change);
        this.build();
      });
      return el("label", {}, `${label} `, select);
    };
    const isLine = this.view === "line";
    return el("div", { class: "controls" }, choice("x", x, this.view === "table" ? "Columns" : "Along x"), isLine ? null : choice("y", y, this.view === "table" ? "Rows" : "Along y"));
  }

  private freeAxes(): number[] {
    const { x, y } = this.axes;
    const color = this.view === "rgb" ? colorAxis(this.node) : undefined;
    const used = this.view === "line" ? [x] : [x, y, color];
    return this.node.shape.map((_, axis) => axis).filter((axis) => !used.includes(axis));
  }

  private sliders(): HTMLElement {
    const rows = this.freeAxes().map((axis) => {
      const length = this.node.shape[axis] ?? 1;
      const index = this.indices[axis] ?? 0;
      const name = this.nameOf(axis);
      const slider = el("input", { type: "range", min: 0, max: length - 1, value: index, "aria-label": name, "data-axis": axis });
      const number = el("input", { type: "number", min: 0, max: length - 1, value: index, "aria-label": `${name}, index` });
      const label = el("span", { class: "label", "data-label": axis }, this.labels[axis] ? this.labelOf(axis, index) : "");
      const set = (text: string): void => {
        const to = Math.min(length - 1, Math.max(0, Math.round(Number(text)) || 0));
        slider.value = number.value = String(to);
        label.textContent = this.labels[axis] ? this.labelOf(axis, to) : "";
        this.change({ indices: { ...this.state.indices, [axis]: to } });
        this.render();
      };
      slider.addEventListener("input", () => set(slider.value));
      number.addEventListener("change", () => set(number.value));
      return el("div", { class: "slider" }, el("span", { class: "dimension" }, name), slider, number, el("span", { class: "quiet" }, `of ${length}`), label);
    });
    return el("div", { class: "sliders" }, ...rows);
  }

  private updateSliders(): void {
    for (const label of this.element.querySelectorAll<HTMLElement>("[data-label]")) {
      const axis = Number(label.dataset["label"]);
      if (this.labels[axis]) label.textContent = this.labelOf(axis, this.indices[axis] ?? 0);
    }
  }

  private colorControls(): HTMLElement {
    const map = el("select", { "aria-label": "Colours" }, ...MAP_NAMES.map((name) => el("option", { value: name, selected: name === (this.state.map ?? "viridis") }, name)));
    map.addEventListener("change", () => {
      this.change({ map: map.value });
      this.heatmap?.setColors(map.value, this.limits);
    });
    const read = (): void => {
      const [low, high] = [Number(this.low.value), Number(this.high.value)];
      if (!Number.isFinite(low) || !Number.isFinite(high) || this.low.value === "" || this.high.value === "") return;
      this.limits = [low, high];
      this.change({ low, high });
      this.heatmap?.setColors(map.value, this.limits);
    };
    this.low.onchange = read;
    this.high.onchange = read;
    const auto = el("button", { type: "button", onclick: () => {
      this.limits = null;
      delete this.state.low;
      delete this.state.high;
      this.change({});
      this.heatmap?.setColors(map.value, null);
    } }, "Auto");
    const grid = el("input", { type: "checkbox", checked: this.state.grid === true });
    grid.addEventListener("change", () => {
      this.change({ grid: grid.checked });
      void this.showChunks();
    });
    const zoom = (label: string, text: string, act: () => void): HTMLElement => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    return el(
      "div",
      { class: "controls" },
      ...(this.view === "rgb" ? [] : [el("label", {}, "Colours ", map), el("label", {}, "from ", this.low), el("label", {}, "to ", this.high), auto]),
      zoom("Zoom in", "+", () => this.heatmap?.zoom(1.5)),
      zoom("Zoom out", "−", () => this.heatmap?.zoom(1 / 1.5)),
      zoom("Show everything", "Fit", () => this.heatmap?.fit()),
      el("label", {}, grid, " Chunk grid"),
    );
  }

  // -- showing -------------------------------------------------------------------------------------------------------

  private render(): void {
    this.element.parentElement?.querySelector(".error.data")?.remove();
    if (this.view === "heatmap" || this.view === "rgb") void this.showHeatmap();
    else if (this.view === "line") void this.showLine();
    else this.showTable();
  }

  private put(shown: Shown, element: HTMLElement): void {
    this.shown?.close();
    this.shown = shown;
    this.heatmap = shown instanceof Heatmap ? shown : null;
    element.setAttribute("aria-label", `${this.view === "line" ? "Line" : "Picture"} of ${this.node.path || "the array"}`);
    fill(this.picture, element);
    this.readout.textContent = " ";
  }

  private async showHeatmap(): Promise<void> {
    this.sources ??= await this.readSources();
    const { x, y } = this.axes;
    const color = this.view === "rgb" ? colorAxis(this.node) : undefined;
    const plane: Plane = { x, y, indices: this.indices, sources: this.sources, ...(color === undefined ? {} : { color }) };
    const heatmap: Heatmap = new Heatmap(this.api, {
      plane,
      map: this.state.map ?? "viridis",
      limits: this.limits,
      box: this.state.box,
      labelX: (index) => this.labelOf(x, index),
      labelY: (index) => this.labelOf(y, index),
      onCursor: (cursor) => this.showCursor(cursor),
      onLimits: (low, high) => {
        this.limits = [low, high];
        [this.low.value, this.high.value] = [shortText(low), shortText(high)];
      },
      onBox: (box) => {
        if (box === undefined) delete this.state.box;
        else this.state.box = box;
        this.change({});
      },
      onError: this.onError,
    });
    if (this.limits !== null) [this.low.value, this.high.value] = this.limits.map(shortText) as [string, string];
    this.put(heatmap, heatmap.canvas);
    if (this.state.grid) void this.showChunks();
  }

  /** Return the array and the coarser levels of its pyramid, where it is the finest. */
  private async readSources(): Promise<Source[]> {
    const own: Source = { node: this.node, factorX: 1, factorY: 1 };
    const { pyramid } = this.node;
    if (pyramid === undefined) return [own];
    const prefix = pyramid.group ? `${pyramid.group}/` : "";
    const paths = pyramid.paths.map((path) => prefix + path);
    const first = paths.indexOf(this.node.path);
    const { x, y } = this.axes;
    const coarser = await Promise.all(
      paths.slice(first + 1).map(async (path): Promise<Source | null> => {
        const node = await this.api.node(path).catch(() => null);
        if (node?.kind !== "array" || node.shape.length !== this.node.shape.length || node.numpy !== this.node.numpy) return null;
        const others = node.shape.every((length, axis) => axis === x || axis === y || length === this.node.shape[axis]);
        const factor = (axis: number): number => Math.max(1, Math.round((this.node.shape[axis] ?? 1) / (node.shape[axis] ?? 1)));
        return others ? { node, factorX: factor(x), factorY: factor(y) } : null;
      }),
    );
    return [own, ...coarser.filter((one): one is Source => one !== null)];
  }

  private showCursor(cursor: Cursor | null): void {
    if (cursor === null) {
      this.readout.textContent = " ";
      return;
    }
    const { x, y } = this.axes;
    const place = `${this.nameOf(y)} ${this.placeOf(y, cursor.y)}, ${this.nameOf(x)} ${this.placeOf(x, cursor.x)}: `;
    const { element } = cursor;
    if (element === undefined) this.readout.textContent = `${place}…`;
    else this.readout.textContent = place + this.elementText(element, cursor.dtype);
  }

  private elementText(element: Element | Element[], dtype: string): string {
    if (Array.isArray(element) && this.view === "rgb") return element.map((one) => textOf(one as Element, dtype)).join(", ");
    const stored = textOf(element as Element, dtype);
    const { packing, units } = this.node;
    if (packing === null || typeof element === "object") return `${stored}${units === null ? "" : ` ${units}`}`;
    const decoded = unpack(packing, Number(element));
    return Number.isNaN(decoded) ? `missing (stored ${stored})` : `${shortText(decoded)}${units === null ? "" : ` ${units}`} (stored ${stored})`;
  }

  private async showLine(): Promise<void> {
    const { x } = this.axes;
    const length = this.node.shape[x] ?? 1;
    const step = Math.max(1, Math.ceil(length / MAX_LINE));
    const query = this.node.shape.map((_, axis) => `${axis}=${axis === x ? `::${step}` : (this.indices[axis] ?? 0)}`).join("&");
    const asked = JSON.stringify([this.view, query]);
    this.picture.dataset["asked"] = asked;
    try {
      const raw = await this.api.raw(this.node.path, query);
      if (this.picture.dataset["asked"] !== asked || this.view !== "line") return;
      const read = elements(raw.bytes, raw.dtype);
      const values = Float64Array.from({ length: read.length }, (_, at) => unpack(this.node.packing, read.number(at)));
      const line = new Line({
        values,
        label: (at) => this.labelOf(x, at * step),
        onCursor: (at) => {
          this.readout.textContent = at === null ? " " : `${this.nameOf(x)} ${this.placeOf(x, at * step)}: ${this.elementText(read.at(at), raw.dtype)}`;
        },
      });
      this.put(line, line.canvas);
    } catch (error) {
      this.onError(error);
    }
  }

  private showTable(): void {
    const count = this.node.shape.length;
    const { x, y } = this.axes;
    const rows = count === 0 ? undefined : count === 1 ? 0 : y;
    const table = new Table(this.api, this.node, rows, count > 1 ? x : undefined, this.indices, (axis, index) => this.placeOf(axis, index), this.onError);
    this.put(table, table.element);
  }

  private async showChunks(): Promise<void> {
    if (!this.state.grid) {
      this.heatmap?.setChunks(null);
      return;
    }
    const { x, y } = this.axes;
    const query = this.node.shape.map((_, axis) => `${axis}=${axis === x || axis === y ? ":" : (this.indices[axis] ?? 0)}`).join("&");
    try {
      this.heatmap?.setChunks(await this.api.chunks(this.node.path, query));
    } catch (error) {
      this.onError(error);
    }
  }
}
