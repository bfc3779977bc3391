/** Elements as a table, a window of rows and columns at a time: for text, structs, and exact values. */

import { type Api, type ArrayNode, queryOf } from "./api.js";
import { choice, el, fill } from "./dom.js";
import { elements, isKnown, NOTATIONS, notedText } from "./elements.js";

const ROWS = 50;
const COLUMNS = 16;

/** Write an element of JSON as the text of a cell. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `(${value.map(cellText).join(", ")})`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export interface TableOptions {
  /** Axis of the rows and of the columns, where there are such. */
  rows: number | undefined;
  columns: number | undefined;
  /** Index along every axis. */
  indices: () => Record<number, number>;
  labels: (axis: number, index: number) => string;
  /** How floats are written, one of `NOTATIONS`. */
  notation: () => string;
  onNotation: (notation: string) => void;
  onError: (error: unknown) => void;
}

export class Table {
  readonly element = el("div", { class: "table" });
  private firstRow = 0;
  private firstColumn = 0;
  private request: AbortController | null = null;

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
    private readonly options: TableOptions,
  ) {}

  close(): void {
    this.request?.abort();
  }

  /** Read the elements of the window, and show them. */
  async load(): Promise<void> {
    this.request?.abort();
    if (this.node.shape.includes(0)) {
      fill(this.element, el("p", { class: "quiet" }, "This array has no elements."));
      return;
    }
    const request = new AbortController();
    this.request = request;
    try {
      const { rows, columns } = this.options;
      this.paint(this.matrix(await this.read(this.query(), request.signal)), this.lengthOf(rows), this.lengthOf(columns));
    } catch (error) {
      if (!request.signal.aborted) this.options.onError(error);
    }
  }

  /** Return a URL whose answer changes with the values that are shown. */
  probe(): string {
    return this.api.url(this.node.path, this.isRead() ? "raw" : "json", this.query());
  }

  private query(): string {
    const { rows, columns } = this.options;
    const window = (first: number, axis: number, most: number): string => `${first}:${Math.min(this.lengthOf(axis), first + most)}`;
    const picks: Record<number, number | string> = { ...this.options.indices() };
    if (rows !== undefined) picks[rows] = window(this.firstRow, rows, ROWS);
    if (columns !== undefined) picks[columns] = window(this.firstColumn, columns, COLUMNS);
    return queryOf(this.node, picks);
  }

  /** Whether elements are read from bytes here. */
  private isRead(): boolean {
    return this.node.is_raw && isKnown(this.node.numpy);
  }

  /** Read elements: from bytes where their type is known here, because numbers in JSON are not exact beyond 53 bits. */
  private async read(query: string, signal: AbortSignal): Promise<unknown> {
    if (!this.isRead()) {
      return (await this.api.slice(this.node.path, `${query}&decode=0`.replace(/^&/, ""), signal)).data;
    }
    const raw = await this.api.raw(this.node.path, query, signal);
    const read = elements(raw.bytes, raw.dtype);
    const texts = Array.from({ length: read.length }, (_, at) => notedText(read.at(at), raw.dtype, this.options.notation()));
    const [, inner] = raw.shape;
    if (raw.shape.length === 0) return texts[0];
    return inner === undefined ? texts : Array.from({ length: raw.shape[0] ?? 0 }, (_, line) => texts.slice(line * inner, (line + 1) * inner));
  }

  private lengthOf(axis: number | undefined): number {
    return axis === undefined ? 1 : (this.node.shape[axis] ?? 1);
  }

  /** Bring elements, whose axes are in the order of the array, into rows and columns; the fields of structs are columns where no axis is. */
  private matrix(data: unknown): unknown[][] {
    const { rows, columns } = this.options;
    const cells = (value: unknown): unknown[] => (this.node.fields === null ? [value] : (value as unknown[]));
    if (rows === undefined) return [cells(data)];
    if (columns === undefined) return (data as unknown[]).map(cells);
    const lines = data as unknown[][];
    if (rows < columns) return lines;
    return (lines[0] ?? []).map((_, row) => lines.map((line) => line[row]));
  }

  private paint(cells: unknown[][], height: number, width: number): void {
    const { rows, columns, labels } = this.options;
    const titles = columns === undefined ? this.node.fields : (cells[0] ?? []).map((_, at) => labels(columns, this.firstColumn + at));
    const corner = rows === undefined ? null : el("td", {});
    const head = titles === null ? null : el("thead", {}, el("tr", {}, corner, ...titles.map((title) => el("th", { scope: "col" }, title))));
    const body = cells.map((line, at) =>
      el(
        "tr",
        {},
        rows === undefined ? null : el("th", { scope: "row" }, labels(rows, this.firstRow + at)),
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
        this.isRead() && /f[248]$/.test(this.node.numpy) ? choice("Notation", NOTATIONS, this.options.notation(), (notation) => this.options.onNotation(notation)) : null,
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
