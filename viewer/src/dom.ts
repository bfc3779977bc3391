/** Make elements. Text is always text: nothing from a store is parsed as HTML. */

type Child = Node | string | null | undefined | false;

/** Make an element with attributes; those named `on…` are listeners. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | boolean | ((event: Event) => void) | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  fill(made, ...children);
  return made;
}

/** Replace the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
}

/** Find an element of the page by its id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/** Make a button with a text that may be a sign; the label says what it does. */
export function button(label: string, text: string, act: () => void): HTMLButtonElement {
  return el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
}

/** Make a list of texts to choose from, by the value of each. */
export function choice(label: string, texts: Record<string, string>, chosen: string, act: (value: string) => void): HTMLSelectElement {
  const select = el("select", { "aria-label": label }, ...Object.entries(texts).map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  select.addEventListener("change", () => act(select.value));
  return select;
}

/** Make a box to check, with its label. */
export function check(label: string, checked: boolean, act: (checked: boolean) => void): HTMLElement {
  const input = el("input", { type: "checkbox", checked });
  input.addEventListener("change", () => act(input.checked));
  return el("label", {}, input, ` ${label}`);
}

/** Clear a canvas and give it a size in pixels of the page. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("this browser gives pages no canvas");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Sent to the document when the colours of the page changed. */
export const THEME_EVENT = "tessarr-theme";

/** Act when an element gets another size, and when the colours of the page change, until the function that is returned is called. */
export function onLook(element: Element, act: () => void): () => void {
  const observer = new ResizeObserver(act);
  observer.observe(element);
  document.addEventListener(THEME_EVENT, act);
  return () => {
    observer.disconnect();
    document.removeEventListener(THEME_EVENT, act);
  };
}
