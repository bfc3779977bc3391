/** Elements along one axis: as the line of an array, and as the series through an element of a picture. */

import type { Api, ArrayNode } from "./api.js";
import type { Axes } from "./axes.js";
import { el, fill } from "./dom.js";
import { bytesText, type Elements, elements, elementText } from "./elements.js";
import { Line, type Span } from "./line.js";
import { numberOf } from "./paint.js";

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
  const picks = node.shape.map((_, axis) => `${axis}=${axis === along ? `${span[0]}:${span[1]}:${step}` : (indices[axis] ?? 0)}`);
  return { query: picks.join("&") + (read < count ? `&sample=${read}` : ""), span, step, count, read, nbytes: count * chunk };
}

/** Whether a part has elements that another part leaves out within the same span. */
function isFiner(one: Part, other: Part): boolean {
  return one.step < other.step || one.read / one.count > other.read / other.count;
}

export interface SeriesOptions {
  part: string;
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
}

export class Series {
  readonly element = el("div", { class: "series" });
  private readonly note = el("span", { class: "quiet" });
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
      if (request.signal.aborted) return;
      this.shown = { part, elements: elements(raw.bytes, raw.dtype), dtype: raw.dtype, isSample: raw.isSample };
      this.draw(this.shown);
    } catch (error) {
      if (request.signal.aborted) return;
      this.asked = "";
      this.options.onError(error);
    }
  }

  private draw({ part, elements: read, isSample }: Shown): void {
    const { node } = this;
    const values = Float64Array.from({ length: read.length }, (_, at) => numberOf(read, at, node.packing, this.options.part));
    const samples = { values, first: part.span[0], step: part.step };
    const all = el("button", { type: "button", onclick: () => void this.read(true) }, `Read ${part.count} chunks, ${bytesText(part.nbytes)} decoded`);
    fill(this.note, ...(isSample ? [`From ${part.read} of ${part.count} chunks; zoom in to see every element. `, ...(part.nbytes <= MAX_DECODED ? [all] : [])] : []));
    if (this.line !== null) {
      this.line.setSamples(samples);
      return;
    }
    const { axes, along } = this;
    this.line = new Line({
      samples,
      length: this.length,
      span: this.span,
      mark: this.mark,
      title: axes.titleOf(along),
      titleY: [node.label ?? node.name, node.units === null ? "" : `(${node.units})`].join(" ").trim(),
      ticks: (from, to, count) => axes.ticksOf(along, from, to, count),
      onCursor: (index) => this.readCursor(index),
      onPick: (index) => this.options.onPick(index),
      onSpan: (span) => this.take(span),
    });
    this.line.canvas.setAttribute("aria-label", `Line of ${node.path === "" ? node.name : node.path} along ${axes.nameOf(along)}; arrow keys move, plus and minus zoom`);
    const button = (label: string, text: string, act: () => void): HTMLElement => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const zoom = el("div", { class: "group" }, button("Zoom in along the line", "+", () => this.line?.zoom(1.5)), button("Zoom out along the line", "−", () => this.line?.zoom(1 / 1.5)), button("Show the whole line", "Fit", () => this.line?.fit()));
    fill(this.element, el("div", { class: "zoom" }, zoom, this.note), this.line.canvas);
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
    const { part, elements: read, dtype, isSample } = this.shown;
    const at = (index - part.span[0]) / part.step;
    if (!isSample && Number.isInteger(at) && at >= 0 && at < read.length) this.tell(index, elementText(this.node, read.at(at), dtype));
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
      const query = this.node.shape.map((_, axis) => `${axis}=${axis === this.along ? index : (this.indices[axis] ?? 0)}`).join("&");
      const raw = await this.api.raw(this.node.path, query, request.signal);
      if (!request.signal.aborted) this.tell(index, elementText(this.node, elements(raw.bytes, raw.dtype).at(0), raw.dtype));
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    }
  }
}
