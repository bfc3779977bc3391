/** The tree of nodes: members are listed when a group is opened, and only rows in sight are elements of the page. */

import type { Api, Member } from "./api.js";
import { el, fill } from "./dom.js";

const ROW = 26;
const OPEN_AT_FIRST = 40;
const ROWS_AT_FIRST = 300;
/** Groups that a search lists before it waits for Enter, and at once. */
const LISTED_PER_SEARCH = 300;
const LISTED_AT_ONCE = 6;
const PAUSE_BEFORE_SEARCH = 250;

export interface TreeOptions {
  onSelect: (path: string) => void;
  /** Return what is wrong with a node, in one line; empty: nothing is known. */
  problemOf: (path: string) => string;
}

export interface Entry {
  path: string;
  name: string;
  depth: number;
  member: Member;
  isOpen: boolean;
  /** `null`: not listed yet. */
  children: Entry[] | null;
  next: string | null;
  problem: string;
}

/** List the entries that are shown: below open groups, or those that match and the groups above them. Pure. */
export function shownEntries(roots: Entry[], search: string): Entry[] {
  const found: Entry[] = [];
  const text = search.trim().toLowerCase();
  const visit = (entries: Entry[]): boolean => {
    let any = false;
    for (const entry of entries) {
      const at = found.length;
      found.push(entry);
      const isMatch = text === "" || entry.path.toLowerCase().includes(text);
      const below = entry.children !== null && (entry.isOpen || text !== "") && visit(entry.children);
      if (isMatch || below) any = true;
      else found.length = at;
    }
    return any;
  };
  visit(roots);
  return found;
}

export class Tree {
  private root: Entry;
  private rows: Entry[] = [];
  private readonly listing = new Map<Entry, Promise<void>>();
  private selected = "";
  private search = "";
  private readonly list = el("div", { class: "rows", role: "tree", "aria-label": "Nodes" });
  private active = 0;
  /** Counts searches, so that an older one ends. */
  private turn = 0;
  private timer = 0;
  private note = "";

  constructor(
    private readonly scroller: HTMLElement,
    private readonly api: Api,
    name: string,
    private readonly options: TreeOptions,
  ) {
    this.root = entryOf("", name, 0, { name, kind: "group" });
    fill(scroller, this.list);
    scroller.addEventListener("scroll", () => this.paint());
    new ResizeObserver(() => this.paint()).observe(scroller);
    this.list.addEventListener("keydown", (event) => this.key(event));
  }

  /** List the root, and the groups below as long as they are few. */
  async start(): Promise<void> {
    await this.list_(this.root);
    this.root.isOpen = true;
    this.show();
    let level = this.root.children ?? [];
    let opened = 0;
    while (level.length > 0) {
      const groups = level.filter((entry) => entry.member.kind === "group").slice(0, OPEN_AT_FIRST - opened);
      if (groups.length === 0 || this.rows.length > ROWS_AT_FIRST) return;
      opened += groups.length;
      await Promise.all(groups.map((entry) => this.list_(entry)));
      for (const entry of groups) entry.isOpen ||= (entry.children?.length ?? 0) <= 50; // a person may have opened it meanwhile
      this.show();
      level = groups.flatMap((entry) => (entry.isOpen ? (entry.children ?? []) : []));
    }
  }

  /** Mark a node as selected, and open the groups above it. */
  async reveal(path: string): Promise<void> {
    this.selected = path;
    let entry = this.root;
    const segments = path === "" ? [] : path.split("/");
    for (const segment of segments) {
      if (entry.children === null) await this.list_(entry);
      entry.isOpen = true;
      const child = entry.children?.find((one) => one.name === segment);
      if (child === undefined) break;
      entry = child;
    }
    this.show();
    const at = this.rows.findIndex((one) => one.path === path);
    if (at >= 0) {
      this.active = at;
      const top = at * ROW;
      if (top < this.scroller.scrollTop || top + ROW > this.scroller.scrollTop + this.scroller.clientHeight) {
        this.scroller.scrollTop = Math.max(0, top - this.scroller.clientHeight / 2);
      }
    }
    this.paint();
  }

  /** Show the nodes whose path contains a text, and list groups that were not listed yet to find more. */
  filter(text: string): void {
    this.search = text.trim();
    this.note = "";
    this.turn++;
    clearTimeout(this.timer);
    if (this.search !== "") this.timer = window.setTimeout(() => void this.seek(), PAUSE_BEFORE_SEARCH);
    this.show();
  }

  /** Go on with a search that waits. */
  searchOn(): void {
    if (this.search === "") return;
    clearTimeout(this.timer);
    void this.seek();
  }

  private async seek(): Promise<void> {
    const turn = ++this.turn;
    let listed = 0;
    let waiting = this.unlisted(LISTED_AT_ONCE);
    while (waiting.length > 0 && listed < LISTED_PER_SEARCH) {
      this.note = "Searching …";
      this.show();
      listed += waiting.length;
      await Promise.all(waiting.map((entry) => this.listMore(entry)));
      if (turn !== this.turn) return;
      waiting = this.unlisted(LISTED_AT_ONCE);
    }
    this.note = waiting.length > 0 ? "Not everything was searched: Enter searches on" : "";
    this.show();
  }

  /** Return groups with members that are not listed, those near the root first. */
  private unlisted(count: number): Entry[] {
    const found: Entry[] = [];
    let level = [this.root];
    while (level.length > 0 && found.length < count) {
      found.push(...level.filter((entry) => entry.member.kind === "group" && (entry.children === null || entry.next !== null)));
      level = level.flatMap((entry) => entry.children ?? []);
    }
    return found.slice(0, count);
  }

  private async listMore(entry: Entry): Promise<void> {
    const after = entry.next ?? "";
    entry.next = null;
    await this.list_(entry, after);
  }

  /** List the members of a group after a name; a second call waits for the first. */
  private list_(entry: Entry, after = ""): Promise<void> {
    if (entry.member.kind !== "group") return Promise.resolve();
    const running = this.listing.get(entry) ?? this.read(entry, after).finally(() => this.listing.delete(entry));
    this.listing.set(entry, running);
    return running;
  }

  private async read(entry: Entry, after: string): Promise<void> {
    try {
      const node = await this.api.node(entry.path, after);
      if (node.kind === "array") {
        entry.member = { ...entry.member, kind: "array", dtype: node.dtype, shape: node.shape };
        entry.children = [];
        return;
      }
      const prefix = entry.path === "" ? "" : `${entry.path}/`;
      const made = (node.members ?? []).map((member) => entryOf(prefix + member.name, member.name, entry.depth + 1, member));
      entry.children = [...(after === "" ? [] : (entry.children ?? [])), ...made];
      entry.next = node.next ?? null;
      entry.problem = node.problem ?? "";
    } catch (error) {
      entry.children ??= [];
      entry.problem = error instanceof Error ? error.message : String(error);
    }
  }

  private show(): void {
    this.rows = shownEntries([this.root], this.search);
    this.paint();
  }

  /** Make the rows in sight. */
  paint(): void {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 10);
    const last = Math.min(this.rows.length, Math.ceil((this.scroller.scrollTop + (this.scroller.clientHeight || 800)) / ROW) + 10);
    this.list.style.height = `${(this.rows.length + (this.note === "" ? 0 : 1)) * ROW}px`;
    const hadFocus = this.list.contains(document.activeElement);
    fill(this.list, ...this.rows.slice(first, last).map((entry, at) => this.row(entry, first + at)), this.noteRow());
    if (hadFocus) this.list.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
    const end = this.rows[last - 1];
    if (end !== undefined) void this.more(end);
  }

  /** List the next page of members when the last of a page comes into sight. */
  private async more(entry: Entry): Promise<void> {
    const parent = this.parentOf(entry);
    if (parent?.next == null || parent.children?.at(-1) !== entry) return;
    await this.listMore(parent);
    this.show();
  }

  private parentOf(entry: Entry): Entry | undefined {
    let at = this.root;
    const segments = entry.path.split("/").slice(0, -1);
    for (const segment of segments) {
      const child = at.children?.find((one) => one.name === segment);
      if (child === undefined) return undefined;
      at = child;
    }
    return entry === this.root ? undefined : at;
  }

  private noteRow(): HTMLElement | null {
    if (this.note === "") return null;
    const row = el("div", { class: "row note", role: "status" }, this.note);
    row.style.top = `${this.rows.length * ROW}px`;
    row.style.paddingLeft = "1rem";
    return row;
  }

  private row(entry: Entry, at: number): HTMLElement {
    const problem = entry.problem || entry.member.problem || this.options.problemOf(entry.path);
    const isGroup = entry.member.kind === "group";
    const mark = isGroup ? (entry.isOpen ? "▾" : "▸") : "";
    const facts = isGroup ? "" : `${(entry.member.shape ?? []).join(" × ") || "scalar"} ${entry.member.dtype ?? ""}`;
    const row = el(
      "div",
      {
        class: `row${entry.path === this.selected ? " selected" : ""}`,
        role: "treeitem",
        "aria-level": entry.depth + 1,
        "aria-selected": entry.path === this.selected ? "true" : "false",
        "aria-expanded": isGroup ? (entry.isOpen ? "true" : "false") : undefined,
        tabindex: at === this.active ? 0 : -1,
        title: problem || (entry.path === "" ? entry.name : `/${entry.path}`),
        onclick: (event) => {
          this.active = at;
          if ((event.target as Element).classList.contains("mark")) void this.toggle(entry);
          else this.choose(entry);
        },
        ondblclick: () => void this.toggle(entry),
      },
      el("span", { class: "mark", "aria-hidden": "true" }, mark),
      el("span", { class: isGroup ? "name group" : "name" }, entry.name),
      problem === "" ? null : el("span", { class: "warning", title: problem, "aria-label": `Problem: ${problem}`, role: "img" }, "!"),
      el("span", { class: "facts" }, facts),
    );
    row.style.top = `${at * ROW}px`;
    row.style.paddingLeft = `${entry.depth * 14 + 4}px`;
    return row;
  }

  private choose(entry: Entry): void {
    this.options.onSelect(entry.path);
    if (entry.member.kind === "group" && !entry.isOpen) void this.toggle(entry);
  }

  private async toggle(entry: Entry): Promise<void> {
    if (entry.member.kind !== "group") return;
    const isOpen = !entry.isOpen;
    if (entry.children === null) await this.list_(entry);
    entry.isOpen = isOpen;
    this.show();
  }

  private key(event: KeyboardEvent): void {
    const entry = this.rows[this.active];
    if (entry === undefined) return;
    if (event.key === "ArrowDown") this.active = Math.min(this.rows.length - 1, this.active + 1);
    else if (event.key === "ArrowUp") this.active = Math.max(0, this.active - 1);
    else if (event.key === "Home") this.active = 0;
    else if (event.key === "End") this.active = this.rows.length - 1;
    else if (event.key === "ArrowRight" && !entry.isOpen) void this.toggle(entry);
    else if (event.key === "ArrowLeft" && entry.isOpen) void this.toggle(entry);
    else if (event.key === "ArrowLeft") {
      const parent = this.parentOf(entry);
      if (parent !== undefined) this.active = this.rows.indexOf(parent);
    } else if (event.key === "Enter" || event.key === " ") this.choose(entry);
    else return;
    event.preventDefault();
    const top = this.active * ROW;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top + ROW > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = top + ROW - this.scroller.clientHeight;
    this.paint();
  }
}

function entryOf(path: string, name: string, depth: number, member: Member): Entry {
  return { path, name, depth, member, isOpen: false, children: null, next: null, problem: "" };
}
