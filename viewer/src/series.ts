/** Elements along one axis: as the line of an array, and as the series through an element of a picture. */

import { type Api, type ArrayNode, queryOf } from "./api.js";
import type { Axes } from "./axes.js";
import { button, el, fill } from "./dom.js";
import { readArray } from "./companions.js";
import { bytesText, type Elements, elements, elementText, shortText } from "./elements.js";
import { type Curve, Line, type LineStyle, type Samples, type Span } from "./line.js";
import { numberOf, unwrapped } from "./paint.js";
import { csvFile, pngOf, saveButton } from "./save.js";

const MAX_ELEMENTS = 4_000_000;
/** Elements that are read where chunks are left out. */
const MAX_SAMPLED = 250_000;
/** Bytes of chunks, and chunks, that are read without a question. */
const MAX_UNASKED = 2 ** 28;
const MAX_CHUNKS = 1024;
/** Bytes of chunks that a server decodes for one request. */
const MAX_DECODED = 2 ** 30;
const WAIT_MS = 150;

/** Elements of a span of an axis, and how many of its chunks they are from. */
export interface Part {
  query: string;
  span: Span;
  step: number;
  count: number;
  read: number;
  /** Bytes of all its chunks, decoded. */
  nbytes: number;
}

/** Choose which elements of a span are read: each, or every n-th; where the chunks are many, of some of them. Pure. */
export function partOf(node: ArrayNode, indices: Record<number, number>, along: number, [from, to]: Span, isWhole: boolean): Part {
  const length = node.shape[along] ?? 1;
  const span: Span = [Math.max(0, Math.floor(from)), Math.min(length, Math.ceil(to))];
  const size = node.grid.chunks?.[along] ?? Math.max(1, Math.ceil(length / (node.nchunks[along] ?? 1)));
  const count = Math.max(1, Math.ceil(span[1] / size) - Math.floor(span[0] / size));
  const chunk = (node.grid.chunks ?? [1]).reduce((product, one) => product * one, node.itemsize);
  const read = isWhole ? count : Math.min(count, Math.max(1, Math.min(MAX_CHUNKS, Math.floor(MAX_UNASKED / chunk))));
  const step = Math.max(1, Math.ceil((span[1] - span[0]) / (read < count ? MAX_SAMPLED : MAX_ELEMENTS)));
  const query = queryOf(node, { ...indices, [along]: `${span[0]}:${span[1]}:${step}` });
  return { query: query + (read < count ? `&sample=${read}` : ""), span, step, count, read, nbytes: count * chunk };
}

/** Whether a part has elements that another part leaves out within the same span. */
function isFiner(one: Part, other: Part): boolean {
  return one.step < other.step || one.read / one.count > other.read / other.count;
}

/** What is drawn with the line of an array. */
export interface Beside {
  errors: ArrayNode | null;
  /** Paths of arrays whose lines are drawn too: of the same shape, or lines along the same axis. */
  also: string[];
}

/** Return the numbers that are drawn for elements of an array. */
export function numbersOf(read: Elements, node: ArrayNode, part: string): Float64Array {
  return Float64Array.from({ length: read.length }, (_, at) => numberOf(read, at, node.packing, part));
}

function nameOf(node: ArrayNode): string {
  return node.label ?? node.name;
}

/** Write the name of an array with its unit, as the title of an axis. */
export function titleOf(node: ArrayNode): string {
  return [nameOf(node), node.units === null ? "" : `(${node.units})`].join(" ").trim();
}

export interface SeriesOptions {
  part: () => string;
  style: () => LineStyle;
  beside: () => Beside;
  /** What is shown of the axis at first; `undefined`: everything. */
  span?: Span | undefined;
  onSpan?: (span: Span | null) => void;
  onCursor: (text: string) => void;
  /** An index along the axis was chosen. */
  onPick: (index: number) => void;
  onError: (error: unknown) => void;
}

interface Shown {
  part: Part;
  elements: Elements;
  dtype: string;
  isSample: boolean;
  errors: Float64Array | null;
  also: Curve[];
}

export class Series {
  readonly element = el("div", { class: "series" });
  private readonly note = el("span", { class: "quiet" });
  private readonly csv: HTMLButtonElement;
  private line: Line | null = null;
  private request: AbortController | null = null;
  private exact: AbortController | null = null;
  private timer = 0;
  private asked = "";
  private indices: Record<number, number> = {};
  private along = 0;
  private mark: number | null = null;
  private span: Span | null;
  private shown: Shown | null = null;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly axes: Axes,
    private readonly options: SeriesOptions,
  ) {
    this.span = options.span ?? null;
    this.csv = saveButton("Save the numbers of the line", "CSV", () => `${node.name}.csv`, () => csvFile(this.columns()));
  }

  close(): void {
    clearTimeout(this.timer);
    this.request?.abort();
    this.exact?.abort();
    this.line?.close();
  }

  /** Show the elements along an axis, at one index along every other; `mark` is an index along it that is marked. */
  show(indices: Record<number, number>, along: number, mark: number | null): void {
    if (along !== this.along) {
      this.line?.close();
      [this.line, this.shown, this.asked] = [null, null, ""];
      if (this.element.childElementCount > 0) this.span = null;
    }
    [this.indices, this.along, this.mark] = [indices, along, mark];
    this.line?.setMark(mark);
    const others = this.node.shape.map((_, axis) => (axis === along ? "" : (indices[axis] ?? 0))).join();
    const key = `${along}:${others}`;
    if (key === this.asked) return;
    this.asked = key;
    void this.read(false);
  }

  /** Read the elements again, because they changed. */
  refresh(): void {
    this.asked = "";
  }

  /** Draw in another style, or another part of complex numbers. */
  restyle(): void {
    this.line?.setStyle(this.options.style());
    if (this.shown !== null) this.draw(this.shown);
  }

  /** Return a URL whose answer changes with the values that are shown; `null`: none are shown. */
  probe(): string | null {
    return this.shown === null ? null : this.api.url(this.node.path, "raw", this.shown.part.query);
  }

  private get length(): number {
    return this.node.shape[this.along] ?? 1;
  }

  /** Read the elements of what is shown, and as many beside it; `isAll`: of all chunks, however many they are. */
  private async read(isAll: boolean): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const [from, to] = this.span ?? [0, this.length];
    const beside = (to - from) / 2;
    const [own, wide] = [[from, to] as Span, [from - beside, to + beside] as Span].map((span) => partOf(this.node, this.indices, this.along, span, isAll)) as [Part, Part];
    const part = isFiner(own, wide) ? own : wide;
    try {
      const raw = await this.api.raw(this.node.path, part.query, request.signal);
      const { errors, also } = this.options.beside();
      // Chunks that stand for others need not be those of another array.
      const bars = errors === null || raw.isSample ? null : await this.numbers(errors, part.query, request.signal);
      const lines = await Promise.all(also.map((path) => this.readCurve(path, part.span, isAll, request.signal)));
      if (request.signal.aborted) return;
      const found = lines.filter((one) => one !== null);
      this.shown = { part, elements: elements(raw.bytes, raw.dtype), dtype: raw.dtype, isSample: raw.isSample, errors: bars, also: found };
      this.draw(this.shown);
    } catch (error) {
      if (request.signal.aborted) return;
      this.asked = "";
      this.options.onError(error);
    }
  }

  /** Read decoded numbers of an array. */
  private async numbers(node: ArrayNode, query: string, signal: AbortSignal): Promise<Float64Array> {
    const raw = await this.api.raw(node.path, query, signal);
    return numbersOf(elements(raw.bytes, raw.dtype), node, "abs");
  }

  /** Read the line of another array; `null`: it has none along this axis. */
  private async readCurve(path: string, span: Span, isAll: boolean, signal: AbortSignal): Promise<Curve | null> {
    const node = await readArray(this.api, path);
    const isSame = node?.shape.join() === this.node.shape.join();
    if (node === null || (!isSame && (node.shape.length !== 1 || node.shape[0] !== this.length))) return null;
    const part = partOf(node, isSame ? this.indices : {}, isSame ? this.along : 0, span, isAll);
    return { name: nameOf(node), samples: { values: await this.numbers(node, part.query, signal), first: part.span[0], step: part.step }, errors: null };
  }

  /** Write what is in sight as columns: indices, coordinates, values, and errors. */
  private columns(): { name: string; cells: (string | number)[] }[] {
    if (this.shown === null) return [];
    const { part, errors } = this.shown;
    const { values } = this.samples(this.shown);
    const [from, to] = this.span ?? [0, this.length];
    const rows = Array.from(values, (_, at) => at).filter((at) => part.span[0] + at * part.step >= Math.floor(from) && part.span[0] + at * part.step < to);
    const index = (at: number): number => part.span[0] + at * part.step;
    const name = this.axes.nameOf(this.along);
    return [
      { name: this.axes.hasLabels(this.along) ? `${name} (index)` : name, cells: rows.map(index) },
      ...(this.axes.hasLabels(this.along) ? [{ name, cells: rows.map((at) => this.axes.labelOf(this.along, index(at))) }] : []),
      { name: this.node.name, cells: rows.map((at) => values[at] ?? NaN) },
      ...(errors === null ? [] : [{ name: `${this.node.name} (error)`, cells: rows.map((at) => errors[at] ?? NaN) }]),
    ];
  }

  private samples({ part, elements: read }: Shown): Samples {
    const what = this.options.part();
    const values = numbersOf(read, this.node, what);
    return { values: what === "unwrapped" ? unwrapped(values) : values, first: part.span[0], step: part.step };
  }

  private draw(shown: Shown): void {
    const { node } = this;
    const { part, isSample } = shown;
    const curves: Curve[] = [{ name: nameOf(node), samples: this.samples(shown), errors: shown.errors }, ...shown.also];
    const all = el("button", { type: "button", onclick: () => void this.read(true) }, `Read ${part.count} chunks, ${bytesText(part.nbytes)} decoded`);
    fill(this.note, ...(isSample ? [`From ${part.read} of ${part.count} chunks; zoom in to see every element. `, ...(part.nbytes <= MAX_DECODED ? [all] : [])] : []));
    this.csv.disabled = isSample; // which elements these are is not known
    if (this.line !== null) {
      this.line.setCurves(curves);
      return;
    }
    const { axes, along } = this;
    this.line = new Line({
      curves,
      style: this.options.style(),
      length: this.length,
      span: this.span,
      mark: this.mark,
      label: `Line of ${node.path === "" ? node.name : node.path} along ${axes.nameOf(along)}; arrow keys move, plus and minus zoom`,
      title: axes.titleOf(along),
      titleY: titleOf(node),
      dtype: node.numpy,
      ticks: (from, to, count) => axes.ticksOf(along, from, to, count),
      onCursor: (index) => this.readCursor(index),
      onPick: (index) => this.options.onPick(index),
      onSpan: (span) => this.take(span),
      onError: this.options.onError,
    });
    const zoom = el("div", { class: "group" }, button("Zoom in along the line", "+", () => this.line?.zoom(1.5)), button("Zoom out along the line", "−", () => this.line?.zoom(1 / 1.5)), button("Show the whole line", "Fit", () => this.line?.fit()));
    const files = el(
      "div",
      { class: "group" },
      saveButton("Save the line as a picture", "PNG", () => `${node.name}.png`, () => pngOf([this.line?.element])),
      this.csv,
    );
    fill(this.element, el("div", { class: "zoom" }, zoom, files, this.note), this.line.element);
  }

  /** Take another span; its elements are read where those at hand are not all of it. */
  private take(span: Span | null): void {
    this.span = span;
    const [from, to] = span ?? [0, this.length];
    this.options.onSpan?.(span === null ? null : [Math.floor(from), Math.ceil(to)]);
    clearTimeout(this.timer);
    const part = this.shown?.part;
    if (part === undefined) return;
    const isCovered = part.span[0] <= from && part.span[1] >= to;
    const isExact = isCovered && !isFiner(partOf(this.node, this.indices, this.along, [from, to], false), part);
    if (!isExact) this.timer = window.setTimeout(() => void this.read(false), WAIT_MS);
  }

  /** Show the element under the cursor, exactly: one that is not at hand is read. */
  private readCursor(index: number | null): void {
    this.exact?.abort();
    if (index === null || this.shown === null) {
      this.options.onCursor(" ");
      return;
    }
    const { part, elements: read, dtype, isSample, errors } = this.shown;
    const at = (index - part.span[0]) / part.step;
    const error = errors?.[at];
    const more = error === undefined || Number.isNaN(error) ? "" : ` ± ${shortText(error)}`;
    if (!isSample && Number.isInteger(at) && at >= 0 && at < read.length) this.tell(index, elementText(this.node, read.at(at), dtype) + more);
    else void this.readExactly(index);
  }

  private tell(index: number, text: string): void {
    this.options.onCursor(`${this.axes.nameOf(this.along)} ${this.axes.placeOf(this.along, index)}: ${text}`);
  }

  private async readExactly(index: number): Promise<void> {
    this.tell(index, "…");
    const request = new AbortController();
    this.exact = request;
    await new Promise((resolve) => window.setTimeout(resolve, WAIT_MS / 2));
    if (request.signal.aborted) return;
    try {
      const query = queryOf(this.node, { ...this.indices, [this.along]: index });
      const raw = await this.api.raw(this.node.path, query, request.signal);
      if (!request.signal.aborted) this.tell(index, elementText(this.node, elements(raw.bytes, raw.dtype).at(0), raw.dtype));
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    }
  }
}
