/** Controls of colours: the map, the limits and how they follow from the values; and the colour bar with a histogram. */

import { colorTable, histogramOf, LIMITS, limitsOf, MAP_NAMES, NORMS, shareOf, valueAt } from "./colors.js";
import { choice, el, onLook, sized } from "./dom.js";
import { markTexts, shortText } from "./elements.js";
import { type Coloring, PARTS } from "./paint.js";
import type { State } from "./state.js";
import { valueTicks } from "./ticks.js";

export interface ContrastOptions {
  state: State;
  isComplex: boolean;
  units: string | null;
  /** Something in the state changed: colours are made again. */
  onChange: (change: Partial<State>) => void;
}

const BAR = { left: 34, width: 16, top: 6, bottom: 40 };
const BINS = 64;

export class Contrast {
  readonly controls: HTMLElement;
  readonly legend = el("canvas", { class: "legend", role: "img", "aria-label": "Colour bar" });
  private readonly low = el("input", { type: "text", inputmode: "decimal", size: 8, "aria-label": "Value of the first colour" });
  private readonly high = el("input", { type: "text", inputmode: "decimal", size: 8, "aria-label": "Value of the last colour" });
  private readonly how: HTMLSelectElement;
  private readonly ignore: () => void;
  private values = new Float64Array();
  private known: [number, number] | null = null;

  constructor(private readonly options: ContrastOptions) {
    const { state } = options;
    const maps = Object.fromEntries(MAP_NAMES.map((name) => [name, name]));
    const map = choice("Colours", maps, this.map, (value) => this.change({ map: value }));
    const norm = choice("Scale of colours", NORMS, state.norm ?? "linear", (value) => this.change({ norm: value }));
    this.how = choice("Limits of colours", { ...LIMITS, given: "given" }, this.isGiven() ? "given" : (state.limits ?? "robust"), (value) => {
      if (value === "given") this.give();
      else this.change({ limits: value, low: undefined, high: undefined });
    });
    const part = options.isComplex ? choice("Part of complex numbers", PARTS, this.part, (value) => this.change({ part: value })) : null;
    this.low.addEventListener("change", () => this.give());
    this.high.addEventListener("change", () => this.give());
    this.controls = el("div", { class: "controls" }, part, el("label", {}, "Colours ", map), norm, el("label", {}, "Limits ", this.how), el("span", {}, this.low, " to ", this.high));
    this.ignore = onLook(this.legend, () => this.paint());
  }

  close(): void {
    this.ignore();
  }

  get part(): string {
    return this.options.state.part !== undefined && this.options.state.part in PARTS ? this.options.state.part : "abs";
  }

  private get isPhase(): boolean {
    return this.options.isComplex && this.part === "phase";
  }

  /** Whether colours are of the phase, and the limits of the magnitude. */
  get isBoth(): boolean {
    return this.options.isComplex && this.part === "both";
  }

  private get map(): string {
    return this.options.state.map ?? (this.isPhase || this.isBoth ? "phase" : "viridis");
  }

  /** Return the colours by the state and the values; `null`: the limits are not known yet. */
  coloring(): Coloring | null {
    const { state } = this.options;
    const norm = this.isPhase ? "linear" : (state.norm ?? "linear");
    const limits: [number, number] | null = this.isPhase ? [-Math.PI, Math.PI] : this.isGiven() ? [state.low ?? 0, state.high ?? 1] : this.known;
    return limits === null ? null : { map: this.map, limits, norm };
  }

  /** Take the values of the whole plane, from which limits follow and of which the histogram is. */
  setValues(values: Float64Array): void {
    this.values = values;
    const { state } = this.options;
    this.known = limitsOf(values, state.limits, state.norm);
    const [low, high] = this.coloring()?.limits ?? this.known;
    [this.low.value, this.high.value] = [shortText(low), shortText(high)];
    this.how.value = this.isGiven() ? "given" : (state.limits ?? "robust");
    this.paint();
  }

  private isGiven(): boolean {
    return this.options.state.low !== undefined && this.options.state.high !== undefined;
  }

  private give(): void {
    const [low, high] = [Number(this.low.value), Number(this.high.value)];
    const areNumbers = this.low.value.trim() !== "" && this.high.value.trim() !== "" && Number.isFinite(low) && Number.isFinite(high);
    for (const input of [this.low, this.high]) input.setAttribute("aria-invalid", areNumbers ? "false" : "true");
    if (areNumbers) this.change({ low, high });
  }

  private change(change: { [name in keyof State]?: State[name] | undefined }): void {
    const { state } = this.options;
    Object.assign(state, change);
    for (const name of ["low", "high"] as const) if (state[name] === undefined) delete state[name];
    this.setValues(this.values);
    this.options.onChange({});
  }

  private paint(): void {
    const coloring = this.coloring();
    const [width, height] = [this.legend.clientWidth, this.legend.clientHeight];
    if (coloring === null || height === 0) return;
    const context = sized(this.legend, width, height);
    const { limits: [low, high], map, norm } = coloring;
    const length = Math.max(1, height - BAR.top - BAR.bottom);
    const y = (share: number): number => BAR.top + length * (1 - share);
    const table = colorTable(this.isBoth ? "gray" : map);
    for (let row = 0; row < length; row++) {
      const entry = 3 * Math.round(255 * (1 - row / Math.max(1, length - 1)));
      context.fillStyle = `rgb(${table[entry]}, ${table[entry + 1]}, ${table[entry + 2]})`;
      context.fillRect(BAR.left, BAR.top + row, BAR.width, 1.5);
    }
    const style = getComputedStyle(this.legend);
    context.fillStyle = style.getPropertyValue("--quiet") || "#888";
    const shares = this.values.map((value) => (value < low || value > high ? NaN : shareOf(value, low, high, norm)));
    const counts = histogramOf(shares, 0, 1, BINS);
    const most = Math.max(...counts, 1);
    counts.forEach((count, bin) => {
      const long = Math.sqrt(count / most) * (BAR.left - 4); // a root, so that one frequent value hides no other
      context.fillRect(BAR.left - 2 - long, y((bin + 1) / BINS), long, length / BINS);
    });
    context.fillStyle = style.color;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const count = Math.max(2, Math.floor(length / 50));
    const marks = norm === "linear" ? valueTicks(low, high, count) : Array.from({ length: count + 1 }, (_, at) => valueAt(at / count, low, high, norm));
    const texts = norm === "linear" ? markTexts(marks) : marks.map((value) => shortText(Number(value.toPrecision(3))));
    marks.forEach((value, one) => {
      const at = y(shareOf(value, low, high, norm));
      context.fillRect(BAR.left + BAR.width, at, 4, 1);
      context.fillText(texts[one] ?? "", BAR.left + BAR.width + 7, at, width - BAR.left - BAR.width - 8);
    });
    if (this.options.units !== null) {
      context.textAlign = "center";
      context.font = "600 11px system-ui, sans-serif";
      context.fillText(this.options.units, width / 2, height - BAR.bottom + 18, width);
    }
    this.legend.setAttribute("aria-label", `Colour bar from ${shortText(low)} to ${shortText(high)}${this.options.units === null ? "" : ` ${this.options.units}`}, with a histogram`);
  }
}
