/** A plane of an array as a picture: its layers and colours, the chunk grid, coast lines, labels, and the series at an element. */

import { type Api, type ArrayNode, queryOf } from "./api.js";
import type { Axes } from "./axes.js";
import { coastPath, isGeographic } from "./coast.js";
import { Contrast } from "./contrast.js";
import { button, check, choice, el, fill } from "./dom.js";
import { type Element, elementText, textOf } from "./elements.js";
import { type Cursor, Heatmap, type HeatmapOptions, type Point } from "./heatmap.js";
import { type Channel, channelsOf, labelPaths } from "./image.js";
import { Layer, type Tile } from "./layer.js";
import { limitsOf } from "./colors.js";
import { gridText } from "./overlay.js";
import { lastOf, lineStyleOf } from "./line_controls.js";
import { paintChannel, paintLabels, paintNumbers, paintParts, paintPhases } from "./paint.js";
import type { Plane, Source } from "./plane.js";
import { pngOf, saveButton } from "./save.js";
import { numbersOf, Series } from "./series.js";
import { readLabelSources, readSources } from "./sources.js";
import type { State } from "./state.js";

export interface PictureOptions {
  state: State;
  /** The plane that is shown now, without its sources. */
  plane: () => Omit<Plane, "sources">;
  /** Axes with a slider. */
  free: number[];
  isChannels: boolean;
  onChange: (change: Partial<State>) => void;
  /** Another index along an axis was chosen. */
  onIndex: (axis: number, index: number) => void;
  onReadout: (text: string) => void;
  onError: (error: unknown) => void;
}

export class Picture {
  private readonly plots = el("div", { class: "plots" });
  private readonly bar = el("div", { class: "controls" });
  private readonly seriesPanel = el("section", { class: "panel", hidden: true, "aria-label": "Series" });
  private readonly gridNote = el("span", { class: "quiet", role: "status" });
  private readonly valuesNote = el("span", { class: "quiet", role: "status" });
  private readonly contrast: Contrast | null;
  private heatmap: Heatmap | null = null;
  private sources: Promise<Source[]> | null = null;
  private channels: Channel[] = [];
  private labelGroups: string[] = [];
  private main: Layer | null = null;
  private channelLayers = new Map<number, Layer>();
  private series: Series | null = null;
  private turn = 0;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly axes: Axes,
    private readonly options: PictureOptions,
  ) {
    const isNumbers = options.plane().color === undefined;
    this.contrast = isNumbers
      ? new Contrast({ state: options.state, isComplex: /c(8|16)$/.test(node.numpy), units: node.units, onChange: () => {
          options.onChange({});
          this.takeValues();
        } })
      : null;
    void this.readImage().catch(options.onError);
  }

  private readonly fail = (error: unknown): void => {
    this.heatmap?.update();
    this.options.onError(error);
  };

  /** Draw what arrived. */
  private update(): void {
    this.heatmap?.update();
  }

  get elements(): HTMLElement[] {
    return [...(this.contrast === null ? [] : [this.contrast.controls]), this.bar, el("div", { class: "stage" }, this.plots, this.contrast?.legend), this.seriesPanel];
  }

  close(): void {
    this.turn++;
    this.heatmap?.close();
    this.contrast?.close();
    this.series?.close();
  }

  refresh(): void {
    this.heatmap?.refresh();
    this.series?.refresh();
    this.showSeries();
  }

  probe(): string | null {
    const layer = this.main ?? [...this.channelLayers.values()][0];
    return layer === undefined ? null : layer.probe();
  }

  render(): void {
    void this.show().catch(this.options.onError);
  }

  // -- layers --------------------------------------------------------------------------------------------------------

  /** Read what the group of an image says about channels and labels. */
  private async readImage(): Promise<void> {
    const { pyramid } = this.node;
    this.fillBar();
    if (pyramid === undefined || pyramid.axes.length === 0) return;
    const group = await this.api.node(pyramid.group ?? "");
    if (group.kind !== "group") return;
    if (this.options.isChannels) {
      const axis = this.options.plane().color ?? 0;
      this.channels = channelsOf(group.attributes ?? {}, this.node.shape[axis] ?? 0);
      const { channels } = this.options.state;
      this.channels.forEach((channel, at) => (channel.isShown = channels?.includes(at) ?? channel.isShown));
    }
    this.labelGroups = await labelPaths(this.api, group);
    this.fillBar();
    this.render();
  }

  private async show(): Promise<void> {
    const turn = ++this.turn;
    this.sources ??= readSources(this.api, this.node, this.options.plane());
    const plane: Plane = { ...this.options.plane(), sources: await this.sources };
    const labels = await this.labelLayer(plane);
    if (turn !== this.turn || (this.options.isChannels && this.channels.length === 0)) return;
    const layers = this.options.isChannels ? this.layersOfChannels(plane) : [this.mainLayer(plane)];
    const added = this.options.isChannels ? layers.length : 0;
    if (labels !== null) layers.push(labels);
    const { state } = this.options;
    const options: HeatmapOptions = {
      plane, layers, added, box: state.box, isUpwards: this.isUpwards(plane.y) !== (state.flipy === true), isMirrored: state.flipx === true,
      isFilled: state.fill === true, hasGuides: state.guides === true,
      titleX: this.axes.titleOf(plane.x), titleY: this.axes.titleOf(plane.y),
      ticksX: (from, to, count) => this.axes.ticksOf(plane.x, from, to, count),
      ticksY: (from, to, count) => this.axes.ticksOf(plane.y, from, to, count),
      onCursor: (cursor) => this.showCursor(plane, cursor),
      onPick: (at) => {
        this.options.onChange({ at: [at.x, at.y] });
        this.showSeries();
      },
      onBox: (box) => {
        if (box === undefined) delete state.box;
        else state.box = box;
        this.options.onChange({});
      },
      onError: this.options.onError,
      label: `Picture of ${this.node.path === "" ? this.node.name : this.node.path}; arrow keys move a cursor, Enter shows a series`,
    };
    if (this.heatmap === null) {
      this.heatmap = new Heatmap(this.api, options);
      fill(this.plots, this.heatmap.plot.element);
    } else this.heatmap.setOptions(options);
    const [width, height] = [this.node.shape[plane.x] ?? 1, this.node.shape[plane.y] ?? 1];
    this.plots.style.aspectRatio = state.fill === true ? "" : `${width} / ${height}`;
    this.plots.classList.toggle("tall", state.fill === true);
    this.showSeries();
    if (state.grid === true) void this.showChunks();
    await this.showCoast();
  }

  private mainLayer(plane: Plane): Layer {
    const layer: Layer = new Layer(this.api, plane, {
      paint: plane.color === undefined ? null : paintParts(this.node.shape[plane.color] ?? 3, this.options.state.bgr),
      onTile: (tile) => this.onTile(layer, tile),
      onError: this.fail,
    });
    this.main = layer;
    this.recolor();
    return layer;
  }

  private onTile(layer: Layer, tile: Tile): void {
    if (this.contrast !== null && layer.whole() === tile) this.takeValues();
    this.update();
  }

  /** Let limits of colours follow from the values of the whole plane. */
  private takeValues(): void {
    const whole = this.main?.whole();
    if (this.contrast === null || whole === undefined) return;
    const { part } = this.contrast;
    const values = numbersOf(whole.elements, this.node, part);
    this.contrast.setValues(values);
    this.valuesNote.textContent = values.some(Number.isFinite) ? "" : `All values ${whole.isSample ? "that were read " : ""}are missing.`;
    this.recolor();
    this.heatmap?.draw();
  }

  private recolor(): void {
    const coloring = this.contrast?.coloring();
    if (this.contrast === null || coloring === null || coloring === undefined) return;
    this.main?.recolor(this.contrast.isBoth ? paintPhases(coloring) : paintNumbers(coloring, this.node.packing, this.contrast.part));
  }

  private layersOfChannels(plane: Plane): Layer[] {
    this.channelLayers = new Map();
    const { color = 0, ...rest } = plane;
    this.channels.forEach((channel, at) => {
      if (!channel.isShown) return;
      const layer: Layer = new Layer(this.api, { ...rest, indices: { ...plane.indices, [color]: at } }, {
        paint: null,
        onTile: (tile) => {
          if (layer.whole() === tile) this.recolorChannel(at);
          this.update();
        },
        onError: this.fail,
      });
      this.channelLayers.set(at, layer);
      this.recolorChannel(at);
    });
    return [...this.channelLayers.values()];
  }

  private recolorChannel(at: number): void {
    const [channel, layer] = [this.channels[at], this.channelLayers.get(at)];
    const limits = this.windowOf(at);
    if (channel === undefined || layer === undefined || limits === null) return;
    layer.recolor(paintChannel(channel.color, limits));
    this.bar.querySelectorAll<HTMLInputElement>(`[data-channel="${at}"] input.limit`).forEach((input, side) => {
      if (document.activeElement !== input) input.value = String(Number((limits[side] ?? 0).toPrecision(6)));
    });
  }

  /** Return the limits of a channel: those of the state, of the image, or of its values. */
  private windowOf(at: number): [number, number] | null {
    const given = this.options.state.windows[at] ?? this.channels[at]?.window;
    if (given !== undefined && given !== null) return given;
    const whole = this.channelLayers.get(at)?.whole();
    return whole === undefined ? null : limitsOf(Float64Array.from({ length: whole.elements.length }, (_, one) => whole.elements.number(one)));
  }

  private async labelLayer(plane: Plane): Promise<Layer | null> {
    const path = this.options.state.labels;
    if (path === undefined || !this.labelGroups.includes(path)) return null;
    const label = await readLabelSources(this.api, path, this.node, plane);
    if (label === null) return null;
    return new Layer(this.api, label, { paint: paintLabels(), onTile: () => this.update(), onError: this.fail });
  }

  // -- controls ------------------------------------------------------------------------------------------------------

  private fillBar(): void {
    const { state } = this.options;
    const grid = check("Chunk grid", state.grid === true, (checked) => {
      this.options.onChange({ grid: checked });
      void this.showChunks();
    });
    const coast = this.geography() === null ? null : check("Coast lines", state.coast !== false, (checked) => {
      this.options.onChange({ coast: checked });
      void this.showCoast().catch(this.options.onError);
    });
    fill(
      this.bar,
      el("div", { class: "group" }, button("Zoom in", "+", () => this.heatmap?.zoom(1.5)), button("Zoom out", "−", () => this.heatmap?.zoom(1 / 1.5)), button("Show everything", "Fit", () => this.heatmap?.fit())),
      grid, this.gridNote, this.valuesNote, coast, this.labelControl(), ...this.axisControls(),
      saveButton("Save the picture", "PNG", () => `${this.node.name}.png`, () => pngOf([this.heatmap?.plot.element, this.contrast?.legend])),
      this.channels.length === 0 ? null : el("div", { class: "channels", role: "group", "aria-label": "Channels" }, ...this.channels.map((channel, at) => this.channelControl(channel, at))),
    );
  }

  /** Make the controls of the axes: which way they run, whether they keep the shape of elements, and lines at their marks. */
  private axisControls(): HTMLElement[] {
    const { state } = this.options;
    const flag = (label: string, name: "flipx" | "flipy" | "fill" | "guides" | "bgr"): HTMLElement =>
      check(label, state[name] === true, (checked) => {
        if (name !== "guides" && name !== "bgr") delete state.box;
        this.options.onChange({ [name]: checked });
        this.render();
      });
    const isColor = this.options.plane().color !== undefined && !this.options.isChannels;
    return [flag("Flip x", "flipx"), flag("Flip y", "flipy"), flag("Fill", "fill"), flag("Guides", "guides"), ...(isColor ? [flag("BGR", "bgr")] : [])];
  }

  private labelControl(): HTMLElement | null {
    if (this.labelGroups.length === 0) return null;
    const names = Object.fromEntries(this.labelGroups.map((path) => [path, lastOf(path)]));
    return el("label", {}, "Labels ", choice("Labels", { "": "none", ...names }, this.options.state.labels ?? "", (labels) => {
      if (labels === "") delete this.options.state.labels;
      this.options.onChange(labels === "" ? {} : { labels });
      this.render();
    }));
  }

  private channelControl(channel: Channel, at: number): HTMLElement {
    const shown = el("input", { type: "checkbox", checked: channel.isShown });
    shown.addEventListener("change", () => {
      channel.isShown = shown.checked;
      this.options.onChange({ channels: this.channels.flatMap((one, number) => (one.isShown ? [number] : [])) });
      this.render();
    });
    const limit = (label: string): HTMLInputElement => el("input", { type: "text", class: "limit", inputmode: "decimal", size: 6, "aria-label": `${channel.name}, ${label}` });
    const [low, high] = [limit("value of black"), limit("value of the full colour")];
    const read = (): void => {
      const range: [number, number] = [Number(low.value), Number(high.value)];
      if (!range.every(Number.isFinite) || range[0] >= range[1]) return;
      this.options.onChange({ windows: { ...this.options.state.windows, [at]: range } });
      this.recolorChannel(at);
      this.heatmap?.draw();
    };
    for (const input of [low, high]) input.addEventListener("change", read);
    const swatch = el("input", { type: "color", value: `#${channel.color.map((part) => part.toString(16).padStart(2, "0")).join("")}`, "aria-label": `${channel.name}, colour` });
    swatch.addEventListener("input", () => {
      channel.color = [1, 3, 5].map((from) => parseInt(swatch.value.slice(from, from + 2), 16)) as [number, number, number];
      this.recolorChannel(at);
      this.heatmap?.draw();
    });
    return el("div", { class: "channel", "data-channel": at }, el("label", {}, shown, ` ${channel.name}`), swatch, low, high);
  }

  // -- overlays ------------------------------------------------------------------------------------------------------

  private async showChunks(): Promise<void> {
    this.gridNote.textContent = "";
    if (this.options.state.grid !== true) {
      this.heatmap?.setChunks(null);
      return;
    }
    const { x, y, indices } = this.options.plane();
    try {
      const map = await this.api.chunks(this.node.path, queryOf(this.node, { ...indices, [x]: ":", [y]: ":" }));
      this.heatmap?.setChunks(map);
      this.gridNote.textContent = gridText({ ...this.options.plane(), sources: [] }, map);
    } catch (error) {
      this.options.onError(error);
    }
  }

  /** Return the coordinates if x is a longitude and y a latitude. */
  private geography(): { longitudes: number[]; latitudes: number[] } | null {
    const { x, y } = this.options.plane();
    const [longitudes, latitudes] = [this.axes.numbers(x), this.axes.numbers(y)];
    const isMap = isGeographic("lon", this.axes.nameOf(x), this.axes.unitOf(x)) && isGeographic("lat", this.axes.nameOf(y), this.axes.unitOf(y));
    return isMap && longitudes !== null && latitudes !== null && longitudes.length > 1 && latitudes.length > 1 ? { longitudes, latitudes } : null;
  }

  /** Whether north is up only with the first row at the bottom. */
  private isUpwards(y: number): boolean {
    const latitudes = isGeographic("lat", this.axes.nameOf(y), this.axes.unitOf(y)) ? this.axes.numbers(y) : null;
    return latitudes !== null && (latitudes[0] ?? 0) < (latitudes.at(-1) ?? 0);
  }

  private async showCoast(): Promise<void> {
    const found = this.options.state.coast === false ? null : this.geography();
    this.heatmap?.setCoast(found === null ? null : await coastPath(found.longitudes, found.latitudes));
  }

  // -- elements ------------------------------------------------------------------------------------------------------

  private placeOf(plane: Omit<Plane, "sources">, { x, y }: Point): string {
    return `${this.axes.nameOf(plane.y)} ${this.axes.placeOf(plane.y, y)}, ${this.axes.nameOf(plane.x)} ${this.axes.placeOf(plane.x, x)}`;
  }

  private showCursor(plane: Plane, cursor: Cursor | null): void {
    this.options.onReadout(cursor === null ? " " : `${this.placeOf(plane, cursor)}: ${cursor.element === undefined ? "…" : this.valueText(plane, cursor.element, cursor.dtype)}`);
  }

  private valueText(plane: Plane, element: Element | Element[], dtype: string): string {
    if (plane.color === undefined) return elementText(this.node, element as Element, dtype);
    const parts = (element as Element[]).map((one) => textOf(one, dtype));
    return this.channels.length === 0 ? parts.join(", ") : this.channels.map((channel, at) => `${channel.name} ${parts[at] ?? ""}`).join(", ");
  }

  /** Show the series through the chosen element, along an axis that is not in the picture if there is one. */
  private showSeries(): void {
    const { state, free } = this.options;
    const plane = this.options.plane();
    const [x, y] = state.at ?? [-1, -1];
    const isInside = Number.isInteger(x) && Number.isInteger(y) && x >= 0 && y >= 0 && x < (this.node.shape[plane.x] ?? 0) && y < (this.node.shape[plane.y] ?? 0);
    this.heatmap?.setPicked(isInside ? { x, y } : null);
    this.seriesPanel.hidden = !isInside;
    if (!isInside) return;
    const choices = [...free, plane.x, plane.y];
    const along = state.along !== undefined && choices.includes(state.along) ? state.along : (free.find((axis) => (this.node.shape[axis] ?? 1) > 1) ?? plane.x);
    const select = choice("along", Object.fromEntries(choices.map((axis) => [axis, this.axes.nameOf(axis)])), String(along), (axis) => {
      this.options.onChange({ along: Number(axis) });
      this.series?.refresh();
      this.showSeries();
    });
    const close = el("button", { type: "button", "aria-label": "Close the series", title: "Close the series", onclick: () => {
      delete state.at;
      this.options.onChange({});
      this.showSeries();
    } }, "×");
    this.series ??= new Series(this.api, this.node, this.axes, {
      part: () => this.contrast?.part ?? "abs",
      style: () => ({ ...lineStyleOf(state), limits: null }),
      beside: () => ({ errors: null, also: [] }),
      onCursor: this.options.onReadout,
      onPick: (index) => {
        const axis = Number(this.seriesPanel.querySelector("select")?.value);
        if (free.includes(axis)) this.options.onIndex(axis, index);
      },
      onError: this.options.onError,
    });
    fill(this.seriesPanel, el("div", { class: "controls" }, el("strong", {}, `At ${this.placeOf(plane, { x, y })}`), el("label", {}, "along ", select), close), this.series.element);
    const indices = { ...plane.indices, [plane.x]: x, [plane.y]: y };
    this.series.show(indices, along, indices[along] ?? null);
  }
}
