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

/** Draw canvases side by side on the colour of the page, as PNG. */
export async function pngOf(canvases: (HTMLCanvasElement | undefined)[]): Promise<Blob | null> {
  const shown = canvases.filter((one): one is HTMLCanvasElement => one !== undefined && one.isConnected && one.width > 0);
  const canvas = el("canvas", { width: shown.reduce((sum, one) => sum + one.width, 0), height: Math.max(1, ...shown.map((one) => one.height)) });
  const context = canvas.getContext("2d");
  if (context === null || shown.length === 0) return null;
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  let x = 0;
  for (const one of shown) {
    context.drawImage(one, x, 0);
    x += one.width;
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
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
