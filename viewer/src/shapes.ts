/** What is beside and over a plot, as SVG: axes with their marks and titles, guides, marks, coast lines, the rectangle that a person draws. */

import { el, fill } from "./dom.js";
import { type Frame, type Look, MARGIN, type Over, type Selection } from "./frame.js";

/** Pixels for the text of a mark. */
const ROOM = { x: 88, y: MARGIN.left - 24 };

type Attributes = Record<string, string | number>;

function shape(tag: string, attributes: Attributes, ...children: (SVGElement | string)[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Give a shape a colour that is not of the style of the page. */
function stroked(made: SVGElement, stroke: string, width = ""): SVGElement {
  Object.assign(made.style, { stroke, strokeWidth: width });
  return made;
}

export class Shapes {
  /** Where the plot is. */
  readonly middle = el("div", { class: "framed" });
  private readonly around = shape("svg", { class: "axes" });
  private readonly over = shape("svg", { class: "axes over" });
  private coast: SVGElement[] = [];
  private coastPath = "";

  constructor(host: HTMLElement) {
    const { left, top, right, bottom } = MARGIN;
    this.middle.style.inset = `${top}px ${right}px ${bottom}px ${left}px`;
    fill(host, this.around, this.middle, this.over);
  }

  draw({ frame, over }: Look): void {
    const { left, top } = MARGIN;
    const [below, above] = [frame.guides === "below", frame.guides === "over"].map((isDrawn) => (isDrawn ? guidesOf(frame) : [])) as [SVGElement[], SVGElement[]];
    const room = { x: left, y: top, width: frame.width, height: frame.height };
    const edge = shape("svg", room, shape("path", { class: "edge", d: frame.edge ?? "" }));
    fill(this.around, edge, shape("g", { transform: `translate(${left}, ${top})` }, ...below, ...axesOf(frame)));
    fill(this.over, shape("svg", room, ...this.overOf(over, frame), ...above, ...selectedOf(over.selection ?? null)));
  }

  private overOf({ lines = [], coast = null, marks = [], rules = [], names = [] }: Over, { width, height }: Frame): SVGElement[] {
    return [
      ...lines.map(({ path, kind }) => shape("path", { class: kind, d: path })),
      ...(coast === null ? [] : this.coastOf(coast)),
      ...marks.map(({ x, y, width: wide, height: high, color }) => shape("g", { fill: "none" },
        shape("rect", { x: x - 1, y: y - 1, width: wide + 2, height: high + 2, stroke: "#000" }), shape("rect", { x, y, width: wide, height: high, stroke: color }))),
      ...rules.map(({ at, kind }) => shape("line", { class: kind, x1: at, x2: at, y2: height })),
      ...names.map(({ text, color }, at) => shape("g", { transform: `translate(${width - 18}, ${8 + 15 * at})` },
        stroked(shape("line", { x2: 14 }), color, "3px"), shape("text", { x: -6, "text-anchor": "end" }, text))),
    ];
  }

  /** Place coast lines within their plane; their path is made once, because it is long. */
  private coastOf({ path, place: { left, top, scaleX, scaleY }, columns, rows }: NonNullable<Over["coast"]>): SVGElement[] {
    if (path !== this.coastPath) [this.coastPath, this.coast] = [path, ["coast wide", "coast"].map((kind) => shape("path", { class: kind, d: path }))];
    const [width, height] = [columns * scaleX, rows * scaleY];
    for (const one of this.coast) one.setAttribute("transform", `translate(${Math.max(0, -width)}, ${Math.max(0, -height)}) scale(${scaleX}, ${scaleY})`);
    return [shape("svg", { x: left + Math.min(0, width), y: top + Math.min(0, height), width: Math.abs(width), height: Math.abs(height) }, ...this.coast)];
  }
}

/** Draw lines across the plot at the marks of its axes. */
function guidesOf({ right, bottom, x, y }: Frame): SVGElement[] {
  return [
    ...x.marks.map(({ at }) => shape("line", { class: "guide", x1: at, x2: at, y2: bottom })),
    ...y.marks.map(({ at }) => shape("line", { class: "guide", y1: at, y2: at, x2: right })),
  ];
}

function axesOf({ right, bottom, x, y }: Frame): SVGElement[] {
  return [
    ...x.marks.map(({ at, text }) => shape("g", { transform: `translate(${at}, 0)` },
      shape("line", { y1: bottom, y2: bottom + 4 }), shape("text", { y: bottom + 12, "text-anchor": "middle", ...squeezed(text, ROOM.x) }, text))),
    ...y.marks.map(({ at, text }) => shape("g", { transform: `translate(0, ${at})` },
      shape("line", { x1: -4, x2: 0 }), shape("text", { x: -6, "text-anchor": "end", ...squeezed(text, ROOM.y) }, text))),
    shape("text", { class: "title", x: right / 2, y: bottom + 30, "text-anchor": "middle" }, x.title),
    shape("text", { class: "title", transform: `translate(${9 - MARGIN.left}, ${bottom / 2}) rotate(-90)`, "text-anchor": "middle" }, y.title),
  ];
}

/** Make a text narrower that has no room. */
function squeezed(text: string, room: number): Attributes {
  return text.length * 6 > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
}

function selectedOf(selection: Selection | null): SVGElement[] {
  if (selection === null) return [];
  const [[x, y], [toX, toY]] = [selection.from, selection.to];
  return [shape("rect", { class: "selection", x: Math.min(x, toX), y: Math.min(y, toY), width: Math.abs(toX - x), height: Math.abs(toY - y) })];
}
