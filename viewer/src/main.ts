/** The page: the tree on the left, the selected node on the right, the state in the URL. */

import { Api, type GroupNode, type ZarrNode } from "./api.js";
import { ArrayView } from "./array_view.js";
import { details, factsOf } from "./details.js";
import { byId, el, fill } from "./dom.js";
import { dumpState, parseState, type State } from "./state.js";
import { Tree } from "./tree.js";

interface Place {
  root: string;
  name: string;
}

class Page {
  private state: State = parseState(location.hash);
  private view: ArrayView | null = null;
  private turn = 0;

  constructor(
    private readonly api: Api,
    private readonly place: Place,
    private readonly tree: Tree,
  ) {}

  async show(state: State): Promise<void> {
    this.state = state;
    const turn = ++this.turn;
    void this.tree.reveal(state.path);
    try {
      const node = await this.api.node(state.path);
      if (turn === this.turn) this.open(node);
    } catch (error) {
      if (turn === this.turn) fill(byId("node"), this.title(state.path), failure(error));
    }
  }

  /** Follow the URL: a node that was shown already is shown again with its new state. */
  follow(): void {
    const state = parseState(location.hash);
    if (dumpState(state) !== dumpState(this.state)) void this.show(state);
  }

  private open(node: ZarrNode): void {
    this.view?.close();
    this.view = null;
    document.title = `${node.path === "" ? this.place.name : `/${node.path}`} · tessarr view`;
    const parts: (HTMLElement | null)[] = [this.title(node.path)];
    if (node.problem !== undefined) parts.push(el("p", { class: "error", role: "alert" }, node.problem));
    if (node.kind === "array" && Array.isArray(node.shape)) {
      this.view = new ArrayView(this.api, node, this.state, (state) => this.replace(state), (error) => this.fail(error));
      const facts = el("dl", { class: "facts" }, ...factsOf(node).flatMap(([label, text]) => [el("dt", {}, label), el("dd", {}, text)]));
      parts.push(this.view.element, facts);
    } else if (node.kind === "group") parts.push(this.members(node));
    fill(byId("node"), ...parts, ...details(node));
    this.view?.start();
  }

  private replace(state: State): void {
    this.state = state;
    history.replaceState(null, "", dumpState(state));
  }

  private fail(error: unknown): void {
    byId("node").querySelector(".error.data")?.remove();
    this.view?.element.after(failure(error));
  }

  private title(path: string): HTMLElement {
    const segments = path === "" ? [] : path.split("/");
    const links = [el("a", { href: "#/" }, this.place.name)];
    segments.forEach((name, at) => {
      links.push(el("a", { href: dumpState({ path: segments.slice(0, at + 1).join("/"), indices: {} }) }, name));
    });
    return el("h2", {}, ...links.flatMap((link, at) => (at === 0 ? [link] : [" / ", link])));
  }

  private members(node: GroupNode): HTMLElement {
    const prefix = node.path === "" ? "" : `${node.path}/`;
    const rows = (node.members ?? []).map((member) =>
      el(
        "tr",
        {},
        el("td", {}, el("a", { href: dumpState({ path: prefix + member.name, indices: {} }) }, member.name)),
        el("td", {}, member.kind),
        el("td", {}, member.shape === undefined ? "" : member.shape.map((length, axis) => `${member.dimensions?.[axis] ?? ""} ${length}`.trim()).join(" × ")),
        el("td", {}, member.dtype ?? ""),
      ),
    );
    const head = el("thead", {}, el("tr", {}, ...["Name", "Kind", "Shape", "Data type"].map((text) => el("th", { scope: "col" }, text))));
    return rows.length > 0
      ? el("table", { class: "members" }, el("caption", {}, node.next == null ? "Members" : `The first ${rows.length} members`), head, el("tbody", {}, ...rows))
      : el("p", { class: "quiet" }, "This group has no members.");
  }
}

function failure(error: unknown): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof Error && "hint" in error ? String(error.hint) : "";
  return el("p", { class: "error data", role: "alert" }, message, hint === "" ? null : el("span", { class: "hint" }, ` ${hint}`));
}

function setTheme(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem("tessarr-theme", theme);
  } catch {
    // private windows may have no storage
  }
}

function startTheme(): void {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem("tessarr-theme");
  } catch {
    // see above
  }
  document.documentElement.dataset["theme"] = stored ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset["theme"] === "dark" ? "light" : "dark"));
}

async function main(): Promise<void> {
  startTheme();
  const place = (await (await fetch("place.json")).json()) as Place;
  document.title = `${place.name} · tessarr view`;
  byId("place").textContent = place.name;
  const api = new Api(place.root);
  const tree: Tree = new Tree(byId("tree"), api, place.name, (path) => {
    location.hash = dumpState({ path, indices: {} });
  });
  const page = new Page(api, place, tree);
  window.addEventListener("hashchange", () => page.follow());
  const search = byId("search") as HTMLInputElement;
  search.addEventListener("input", () => tree.filter(search.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
      event.preventDefault();
      search.focus();
    }
  });
  await Promise.all([tree.start(), page.show(parseState(location.hash))]);
}

void main().catch((error: unknown) => fill(byId("node"), failure(error)));
