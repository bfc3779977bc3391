/** Files of what is drawn, made in the browser: the picture as PNG, the numbers as CSV. */

import { button, el } from "./dom.js";

/** Make a button that saves what `make` gives as a file; nothing is saved where it gives `null`. */
export function saveButton(label: string, text: string, name: () => string, make: () => Promise<Blob | null>): HTMLButtonElement {
  return button(label, text, () => void make().then((blob) => (blob === null ? undefined : save(blob, name()))));
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Draw parts of the page side by side on its colour, as PNG: canvases, and elements with a canvas, with the lines and texts beside it. */
export async function pngOf(parts: (HTMLElement | undefined)[]): Promise<Blob | null> {
  const shown = parts.filter((one): one is HTMLElement => one !== undefined && one.isConnected && one.clientWidth > 0);
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [shown.reduce((sum, one) => sum + one.clientWidth, 0), Math.max(1, ...shown.map((one) => one.clientHeight))];
  const canvas = el("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const context = canvas.getContext("2d");
  if (context === null || shown.length === 0) return null;
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  let x = 0;
  for (const one of shown) {
    const bounds = one.getBoundingClientRect();
    const page = new DOMMatrix([ratio, 0, 0, ratio, ratio * (x - bounds.left), -ratio * bounds.top]);
    const shapes = (selector: string): void => one.querySelectorAll<SVGGeometryElement>(selector).forEach((shape) => drawShape(context, shape, page));
    shapes("line:not(.over *)");
    for (const drawn of one instanceof HTMLCanvasElement ? [one] : one.querySelectorAll("canvas")) {
      context.setTransform(page);
      const { left, top, width: wide, height: high } = drawn.getBoundingClientRect();
      context.drawImage(drawn, left, top, wide, high);
    }
    shapes(".over line, .over path, .over rect");
    for (const text of one.querySelectorAll<HTMLElement | SVGTextElement>("text, .corner")) drawText(context, text, page);
    x += one.clientWidth;
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Draw a shape of SVG within the drawing that it is in; `page` maps the coordinates of the page. */
function drawShape(context: CanvasRenderingContext2D, shape: SVGGeometryElement, page: DOMMatrix): void {
  const [place, owner] = [shape.getScreenCTM(), shape.ownerSVGElement];
  if (place === null || owner === null) return;
  const { stroke, strokeOpacity, strokeWidth, strokeDasharray, fill } = getComputedStyle(shape);
  const path = new Path2D();
  path.addPath(outlineOf(shape), place);
  context.save();
  context.setTransform(page);
  if (getComputedStyle(owner).overflow === "hidden") {
    const { left, top, width, height } = owner.getBoundingClientRect();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
  }
  if (fill !== "none" && !(shape instanceof SVGLineElement)) {
    context.fillStyle = fill;
    context.fill(path);
  }
  if (stroke !== "none") {
    context.globalAlpha = Number(strokeOpacity);
    context.strokeStyle = stroke;
    context.lineWidth = parseFloat(strokeWidth);
    context.setLineDash(strokeDasharray === "none" ? [] : strokeDasharray.split(",").map(parseFloat));
    context.stroke(path);
  }
  context.restore();
}

function outlineOf(shape: SVGGeometryElement): Path2D {
  if (!(shape instanceof SVGLineElement) && !(shape instanceof SVGRectElement)) return new Path2D(shape.getAttribute("d") ?? "");
  const path = new Path2D();
  if (shape instanceof SVGRectElement) path.rect(shape.x.baseVal.value, shape.y.baseVal.value, shape.width.baseVal.value, shape.height.baseVal.value);
  else {
    path.moveTo(shape.x1.baseVal.value, shape.y1.baseVal.value);
    path.lineTo(shape.x2.baseVal.value, shape.y2.baseVal.value);
  }
  return path;
}

/** Draw a text about the middle of its place; texts of SVG may be turned. */
function drawText(context: CanvasRenderingContext2D, text: HTMLElement | SVGTextElement, page: DOMMatrix): void {
  const { left, top, width, height } = text.getBoundingClientRect();
  const turned = text instanceof SVGTextElement ? text.getScreenCTM() : null;
  const { color, fontWeight, fontSize, fontFamily } = getComputedStyle(text);
  context.setTransform(page.translate(left + width / 2, top + height / 2).multiply(new DOMMatrix([turned?.a ?? 1, turned?.b ?? 0, turned?.c ?? 0, turned?.d ?? 1, 0, 0])));
  context.fillStyle = color;
  context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text.textContent ?? "", 0, 0);
}

/** Write columns of equal length as CSV: a name each, then a line per row. Pure. */
export function csvOf(columns: { name: string; cells: (string | number)[] }[]): string {
  const cell = (value: string | number): string => (typeof value === "number" ? (Number.isNaN(value) ? "" : String(value)) : /[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const rows = columns[0]?.cells.length ?? 0;
  const lines = [columns.map((one) => cell(one.name)).join(",")];
  for (let row = 0; row < rows; row++) lines.push(columns.map((one) => cell(one.cells[row] ?? "")).join(","));
  return `${lines.join("\n")}\n`;
}

/** Return columns as a file. */
export function csvFile(columns: { name: string; cells: (string | number)[] }[]): Promise<Blob> {
  return Promise.resolve(new Blob([csvOf(columns)], { type: "text/csv" }));
}
