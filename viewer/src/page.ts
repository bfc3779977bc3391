/** The selected node on the right: its title, its data, and what it says about itself. It is shown again when it changes. */

import { type Api, ApiError, type ArrayNode, type GroupNode, type Member, type ZarrNode } from "./api.js";
import { ArrayView } from "./array_view.js";
import { details, factsOf } from "./details.js";
import { byId, el, fill } from "./dom.js";
import { downloads, elsewhere } from "./elsewhere.js";
import type { Findings } from "./findings.js";
import { plateSection } from "./plate.js";
import { dumpState, linkTo, parseState, type State } from "./state.js";
import type { Tree } from "./tree.js";

/** Milliseconds between two looks for changes: longer while nothing changes; a look may use a twentieth of the time at most. */
const PAUSE = 3000;
const LONGEST_PAUSE = 30_000;
const SHARE = 20;

export class Page {
  private state: State = parseState(location.hash);
  private view: ArrayView | null = null;
  private turn = 0;
  private described = "";
  private nodeVersion: string | null = null;
  private pause = PAUSE;
  private version: string | null = null;
  private probed: string | null = null;

  constructor(
    private readonly api: Api,
    private readonly name: string,
    private readonly tree: Tree,
    private readonly findings: Findings,
  ) {
    if (!api.isStatic) window.setTimeout(() => void this.watch(), PAUSE);
  }

  async show(state: State): Promise<void> {
    this.state = state;
    const turn = ++this.turn;
    void this.tree.reveal(state.path);
    try {
      const node = await this.api.node(state.path);
      const image = await this.imageOf(node);
      if (turn === this.turn) this.open(node, image);
    } catch (error) {
      if (turn !== this.turn) return;
      this.close();
      fill(byId("node"), this.title(state.path), failure(error));
    }
  }

  /** Follow the URL: a node that was shown already is shown again with its new state. */
  follow(): void {
    const state = parseState(location.hash);
    if (dumpState(state) !== dumpState(this.state)) void this.show(state);
  }

  /** Read the finest level of the image that a group is. */
  private async imageOf(node: ZarrNode): Promise<ArrayNode | null> {
    if (node.kind === "array") return Array.isArray(node.shape) ? node : null;
    const first = node.pyramids?.[0]?.paths[0];
    if (first === undefined) return null;
    const level = await this.api.node(node.path === "" ? first : `${node.path}/${first}`).catch(() => null);
    return level?.kind === "array" && Array.isArray(level.shape) ? level : null;
  }

  private close(): void {
    this.view?.close();
    this.view = null;
    this.version = this.probed = this.nodeVersion = null;
    this.pause = PAUSE;
  }

  private open(node: ZarrNode, array: ArrayNode | null): void {
    this.close();
    this.described = JSON.stringify(node);
    document.title = `${node.path === "" ? this.name : `/${node.path}`} · tessarr view`;
    const parts: (HTMLElement | null)[] = [this.title(node.path)];
    if (node.problem !== undefined) parts.push(el("p", { class: "error", role: "alert" }, node.problem));
    if (array !== null) parts.push(...this.data(array));
    if (node.kind === "group") parts.push(plateSection(this.api, node.path, node.attributes), this.members(node));
    fill(byId("node"), ...parts, this.findings.section(node), elsewhere(this.api, node), ...details(node));
    this.view?.start();
  }

  private data(array: ArrayNode): HTMLElement[] {
    const files = el("div");
    const showFiles = (state: State): void => fill(files, this.api.isStatic ? null : downloads(this.api, array, state));
    const onState = (state: State): void => {
      history.replaceState(null, "", dumpState(state));
      showFiles(state);
    };
    this.view = new ArrayView(this.api, array, { state: this.state, onState, onError: (error) => this.fail(error) });
    showFiles(this.state);
    const facts = el("dl", { class: "facts" }, ...factsOf(array).flatMap(([label, text]) => [el("dt", {}, label), el("dd", {}, text)]));
    return [this.view.element, files, facts];
  }

  private fail(error: unknown): void {
    byId("node").querySelector(".error.data")?.remove();
    this.view?.element.after(failure(error));
  }

  private title(path: string): HTMLElement {
    const segments = path === "" ? [] : path.split("/");
    const links = [this.name, ...segments].map((name, at) =>
      el("a", at === segments.length ? { href: linkTo(path), class: "here", "aria-current": "page" } : { href: linkTo(segments.slice(0, at).join("/")) }, name),
    );
    return el("h2", {}, ...links.flatMap((link, at) => (at === 0 ? [link] : [" / ", link])));
  }

  private members(node: GroupNode): HTMLElement {
    const prefix = node.path === "" ? "" : `${node.path}/`;
    const members = node.members ?? [];
    if (members.length === 0) return el("p", { class: "quiet" }, "This group has no members.");
    const head = el("thead", {}, el("tr", {}, ...["Name", "Kind", "Shape", "Data type"].map((text) => el("th", { scope: "col" }, text))));
    const rows = members.map((member) =>
      el("tr", {}, el("td", {}, el("a", { href: linkTo(prefix + member.name) }, member.name)), el("td", {}, member.kind), el("td", {}, shapeText(member)), el("td", {}, member.dtype ?? "")),
    );
    const caption = node.next == null ? `Members (${members.length})` : `The first ${members.length} members`;
    return el("table", { class: "members" }, el("caption", {}, caption), head, el("tbody", {}, ...rows));
  }

  // -- changes -------------------------------------------------------------------------------------------------------

  /** Look whether the node or its values changed, again and again while the page is visible. */
  private async watch(): Promise<void> {
    const start = performance.now();
    if (document.visibilityState === "visible" && this.described !== "") {
      try {
        this.pause = (await this.look()) ? PAUSE : Math.min(LONGEST_PAUSE, 1.5 * this.pause);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error; // the next look may succeed, and requests of a person say what is wrong
      }
    }
    window.setTimeout(() => void this.watch(), Math.max(this.pause, SHARE * (performance.now() - start)));
  }

  /** Ask for versions, and read what has another one; return whether anything changed. */
  private async look(): Promise<boolean> {
    const { turn } = this;
    const nodeVersion = await this.api.nodeVersion(this.state.path);
    if (turn !== this.turn) return true;
    if (nodeVersion === null || nodeVersion !== this.nodeVersion) {
      const node = await this.api.node(this.state.path);
      if (turn !== this.turn) return true;
      this.nodeVersion = nodeVersion;
      if (JSON.stringify(node) !== this.described) {
        const image = await this.imageOf(node);
        if (turn !== this.turn) return true;
        this.open(node, image);
        this.nodeVersion = nodeVersion;
        this.tell("The node changed, and was read again");
        return true;
      }
    }
    const url = this.view?.probe() ?? null;
    const version = url === null ? null : await this.api.version(url);
    if (turn !== this.turn || url !== this.view?.probe()) return true;
    const isChanged = url === this.probed && version !== this.version;
    [this.probed, this.version] = [url, version];
    if (!isChanged) return false;
    this.view?.refresh();
    this.tell("The values changed, and were read again");
    return true;
  }

  private tell(text: string): void {
    const line = byId("notice");
    line.textContent = `${text} at ${new Date().toLocaleTimeString()}.`;
    line.hidden = false;
  }
}

function shapeText(member: Member): string {
  if (member.shape?.length === 0) return "scalar";
  return (member.shape ?? []).map((length, axis) => `${member.dimensions?.[axis] ?? ""} ${length}`.trim()).join(" × ");
}

/** Say in words what went wrong, and what a person can do. */
export function failure(error: unknown): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError ? error.hint : "";
  return el("p", { class: "error data", role: "alert" }, message, hint === "" ? null : el("span", { class: "hint" }, ` ${hint}`));
}
