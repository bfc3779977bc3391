/** The page: the tree on the left, the selected node on the right, the state in the URL. */

import { byId, fill, THEME_EVENT } from "./dom.js";
import { Findings } from "./findings.js";
import { failure, Page } from "./page.js";
import { linkTo, parseState } from "./state.js";
import { apiOf } from "./static_api.js";
import { Tree } from "./tree.js";

interface Place {
  root: string;
  name: string;
  /** The file with descriptions of all nodes, where there is no server. */
  nodes?: string;
}

function setTheme(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
  document.dispatchEvent(new Event(THEME_EVENT));
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

function startKeys(search: HTMLInputElement): void {
  const help = byId("help") as HTMLDialogElement;
  byId("keys").addEventListener("click", () => help.showModal());
  help.addEventListener("click", () => help.close());
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement && event.target.type !== "range" && event.target.type !== "checkbox";
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") search.focus();
    else if (event.key === "?") help.showModal();
    else return;
    event.preventDefault();
  });
}

async function main(): Promise<void> {
  startTheme();
  const search = byId("search") as HTMLInputElement;
  startKeys(search);
  const place = (await (await fetch("place.json")).json()) as Place;
  document.title = `${place.name} · tessarr view`;
  byId("place").textContent = place.name;
  const api = await apiOf(place);
  const findings: Findings = new Findings(api, () => tree.paint());
  const tree: Tree = new Tree(byId("tree"), api, place.name, {
    onSelect: (path) => (location.hash = linkTo(path)),
    problemOf: (path) => findings.summary(path),
  });
  const page = new Page(api, place.name, tree, findings);
  window.addEventListener("hashchange", () => page.follow());
  search.addEventListener("input", () => tree.filter(search.value));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") tree.searchOn();
  });
  await Promise.all([tree.start(), page.show(parseState(location.hash))]);
}

void main().catch((error: unknown) => fill(byId("node"), failure(error)));
