/** Elements as a table, a window of rows and columns at a time: for text, structs, and exact values. */

import type { Api, ArrayNode } from "./api.js";
import { el, fill } from "./dom.js";
import { elements, isKnown, textOf } from "./elements.js";

const ROWS = 50;
const COLUMNS = 16;

/** Write an element of JSON as the text of a cell. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `(${value.map(cellText).join(", ")})`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export class Table {
  readonly element = el("div", { class: "table" });
  private firstRow = 0;
  private firstColumn = 0;
  private request: AbortController | null = null;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    /** Axis of the rows and of the columns, where there are such. */
    private readonly rows: number | undefined,
    private readonly columns: number | undefined,
    private readonly indices: Record<number, number>,
    private readonly labels: (axis: number, index: number) => string,
    private readonly onError: (error: unknown) => void,
  ) {
    void this.load();
  }

  close(): void {
    this.request?.abort();
  }

  private async load(): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const height = this.lengthOf(this.rows);
    const width = this.lengthOf(this.columns);
    const query = this.node.shape
      .map((_, axis) => {
        if (axis === this.rows) return `${axis}=${this.firstRow}:${Math.min(height, this.firstRow + ROWS)}`;
        if (axis === this.columns) return `${axis}=${this.firstColumn}:${Math.min(width, this.firstColumn + COLUMNS)}`;
        return `${axis}=${this.indices[axis] ?? 0}`;
      })
      .join("&");
    try {
      this.paint(this.matrix(await this.read(query, request.signal)), height, width);
    } catch (error) {
      if (!request.signal.aborted) this.onError(error);
    }
  }

  /** Read elements: from bytes where their type is known here, because numbers in JSON are not exact beyond 53 bits. */
  private async read(query: string, signal: AbortSignal): Promise<unknown> {
    if (!this.node.is_raw || !isKnown(this.node.numpy)) {
      return (await this.api.slice(this.node.path, `${query}&decode=0`.replace(/^&/, ""), signal)).data;
    }
    const raw = await this.api.raw(this.node.path, query, signal);
    const read = elements(raw.bytes, raw.dtype);
    const texts = Array.from({ length: read.length }, (_, at) => textOf(read.at(at), raw.dtype));
    const [, inner] = raw.shape;
    if (raw.shape.length === 0) return texts[0];
    return inner === undefined ? texts : Array.from({ length: raw.shape[0] ?? 0 }, (_, line) => texts.slice(line * inner, (line + 1) * inner));
  }

  private lengthOf(axis: number | undefined): number {
    return axis === undefined ? 1 : (this.node.shape[axis] ?? 1);
  }

  /** Bring what the server sent, whose axes are in the order of the array, into rows and columns. */
  private matrix(data: unknown): unknown[][] {
    if (this.rows === undefined) return [[data]];
    if (this.columns === undefined) return (data as unknown[]).map((value) => [value]);
    const lines = data as unknown[][];
    if (this.rows < this.columns) return lines;
    return (lines[0] ?? []).map((_, row) => lines.map((line) => line[row]));
  }

  private paint(cells: unknown[][], height: number, width: number): void {
    const { rows, columns } = this;
    const head =
      columns === undefined
        ? null
        : el("thead", {}, el("tr", {}, el("th", {}), ...(cells[0] ?? []).map((_, at) => el("th", { scope: "col" }, this.labels(columns, this.firstColumn + at)))));
    const body = cells.map((line, at) =>
      el(
        "tr",
        {},
        rows === undefined ? null : el("th", { scope: "row" }, this.labels(rows, this.firstRow + at)),
        ...line.map((value) => el("td", { class: value === null ? "missing" : "" }, cellText(value))),
      ),
    );
    fill(
      this.element,
      el(
        "p",
        { class: "pager" },
        ...(rows === undefined ? [] : this.pager("row", this.firstRow, ROWS, height, (first) => (this.firstRow = first))),
        ...(columns === undefined ? [] : this.pager("column", this.firstColumn, COLUMNS, width, (first) => (this.firstColumn = first))),
      ),
      el("div", { class: "scroll", tabindex: 0 }, el("table", {}, head, el("tbody", {}, ...body))),
    );
  }

  private pager(word: string, first: number, page: number, length: number, set: (first: number) => void): HTMLElement[] {
    if (length <= page) return [];
    const go = (to: number) => (): void => {
      set(Math.min(Math.max(0, length - page), Math.max(0, to)));
      void this.load();
    };
    const input = el("input", { type: "number", min: 0, max: length - 1, value: first, "aria-label": `First ${word}` });
    input.addEventListener("change", () => go(Math.floor(Number(input.value) || 0))());
    return [
      el("button", { type: "button", onclick: go(first - page), "aria-label": `Previous ${word}s` }, "‹"),
      el("label", {}, `${word} `, input),
      el("span", {}, ` to ${Math.min(length, first + page) - 1} of ${length} `),
      el("button", { type: "button", onclick: go(first + page), "aria-label": `Next ${word}s` }, "›"),
    ];
  }
}
