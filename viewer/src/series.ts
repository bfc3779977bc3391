/** Elements along one axis: as the line of an array, and as the series through an element of a picture. */

import type { Api, ArrayNode } from "./api.js";
import type { Axes } from "./axes.js";
import { el, fill } from "./dom.js";
import { bytesText, type Elements, elements, elementText } from "./elements.js";
import { Line } from "./line.js";
import { numberOf } from "./paint.js";

const MAX_ELEMENTS = 4_000_000;
/** Bytes of chunks that are read without a question. */
const MAX_UNASKED = 2 ** 28;

export interface SeriesOptions {
  part: string;
  onCursor: (text: string) => void;
  /** An index along the axis was chosen. */
  onPick: (index: number) => void;
  onError: (error: unknown) => void;
}

export class Series {
  readonly element = el("div", { class: "series" });
  private line: Line | null = null;
  private request: AbortController | null = null;
  private asked = "";

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly axes: Axes,
    private readonly options: SeriesOptions,
  ) {}

  close(): void {
    this.request?.abort();
    this.line?.close();
  }

  /** Show the elements along an axis, at one index along every other; `mark` is an index along it that is marked. */
  show(indices: Record<number, number>, along: number, mark: number | null): void {
    const length = this.node.shape[along] ?? 1;
    const step = Math.max(1, Math.ceil(length / MAX_ELEMENTS));
    const query = this.node.shape.map((_, axis) => `${axis}=${axis === along ? `::${step}` : (indices[axis] ?? 0)}`).join("&");
    if (query === this.asked && this.line !== null) {
      this.line.setMark(mark === null ? null : Math.floor(mark / step));
      return;
    }
    const chunk = (this.node.grid.chunks ?? [1]).reduce((product, one) => product * one, this.node.itemsize);
    const count = this.node.nchunks[along] ?? 1;
    const read = (): void => void this.read(query, along, step, mark);
    if (this.asked === "" && count > 1 && count * chunk > MAX_UNASKED) {
      const text = `Read ${count} chunks, ${bytesText(count * chunk)} decoded`;
      fill(this.element, el("p", {}, el("button", { type: "button", onclick: read }, text)));
    } else read();
  }

  /** Read the elements again, because they changed. */
  refresh(): void {
    this.asked = "";
  }

  /** Return a URL whose answer changes with the values that are shown; `null`: none are shown. */
  probe(): string | null {
    return this.asked === "" ? null : this.api.url(this.node.path, "raw", this.asked);
  }

  private async read(query: string, along: number, step: number, mark: number | null): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.asked = query;
    try {
      const raw = await this.api.raw(this.node.path, query, request.signal);
      if (!request.signal.aborted) this.draw(elements(raw.bytes, raw.dtype), raw.dtype, along, step, mark);
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    }
  }

  private draw(read: Elements, dtype: string, along: number, step: number, mark: number | null): void {
    const { axes, node } = this;
    const values = Float64Array.from({ length: read.length }, (_, at) => numberOf(read, at, node.packing, this.options.part));
    const line = new Line({
      values,
      mark: mark === null ? null : Math.floor(mark / step),
      title: axes.titleOf(along),
      titleY: [node.label ?? node.name, node.units === null ? "" : `(${node.units})`].join(" ").trim(),
      ticks: (count) => axes.ticksOf(along, 0, (node.shape[along] ?? 1), count).map(({ at, text }) => ({ at: at / step, text })),
      onCursor: (at) => this.options.onCursor(at === null ? " " : `${axes.nameOf(along)} ${axes.placeOf(along, at * step)}: ${elementText(node, read.at(at), dtype)}`),
      onPick: (at) => this.options.onPick(at * step),
    });
    line.canvas.setAttribute("aria-label", `Line of ${node.path === "" ? node.name : node.path} along ${axes.nameOf(along)}; arrow keys move`);
    this.line?.close();
    this.line = line;
    fill(this.element, line.canvas);
  }
}
