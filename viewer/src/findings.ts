/** Findings of `tessarr check`: of an array when it is shown, of a group and all below it when a person asks. */

import type { Api, Finding, ZarrNode } from "./api.js";
import { el, fill } from "./dom.js";
import { linkTo } from "./state.js";

export class Findings {
  /** Findings by the path of their node, of all nodes that were checked. */
  private readonly known = new Map<string, Finding[]>();

  constructor(
    private readonly api: Api,
    /** Findings of other nodes became known. */
    private readonly onChange: () => void,
  ) {}

  /** Return the most severe findings of a node in one line; empty: none are known. */
  summary(path: string): string {
    return (this.known.get(path) ?? []).filter((one) => one.severity !== "info").map((one) => one.message).join("; ");
  }

  /** Make the section of a node. */
  section(node: ZarrNode): HTMLElement {
    const list = el("div", { "aria-live": "polite" });
    const section = el("section", { class: "checked" }, el("h3", {}, "Findings"), list);
    const check = (): void => {
      fill(list, el("p", { class: "quiet" }, "Checking …"));
      void this.check(node.path).then(
        (found) => this.fillList(list, node, found),
        (error: unknown) => fill(list, el("p", { class: "error" }, error instanceof Error ? error.message : String(error))),
      );
    };
    if (node.kind === "array") check();
    else fill(list, el("button", { type: "button", onclick: check }, "Check the documents of this group and of all below it"));
    return section;
  }

  private async check(path: string): Promise<Finding[] | null> {
    const found = await this.api.check(path);
    if (found === null) return null;
    for (const one of this.known.keys()) if (one === path || path === "" || one.startsWith(`${path}/`)) this.known.delete(one);
    for (const one of found) this.known.set(one.path, [...(this.known.get(one.path) ?? []), one]);
    this.onChange();
    return found;
  }

  private fillList(list: HTMLElement, node: ZarrNode, found: Finding[] | null): void {
    const rest = "`tessarr check PLACE --data` reads every chunk too.";
    if (found === null) fill(list, el("p", { class: "quiet" }, "There are too many nodes for a page: run `tessarr check PLACE`."));
    else if (found.length === 0) fill(list, el("p", { class: "quiet" }, `The documents are in order. ${rest}`));
    else fill(list, el("ul", { class: "findings" }, ...found.map((one) => item(one, node.path))), el("p", { class: "quiet" }, rest));
  }
}

function item(finding: Finding, path: string): HTMLElement {
  const where = finding.path === path ? null : el("a", { href: linkTo(finding.path) }, `/${finding.path}`);
  const repair = finding.repair === null ? null : el("div", { class: "hint" }, `tessarr repair: ${finding.repair}`);
  return el("li", {}, el("strong", { class: finding.severity === "error" ? "error" : "" }, `${finding.severity} ${finding.rule}`), " ", where, where === null ? null : ": ", finding.message, repair);
}
