/** Controls of lines: shape, scale, limits, errors, and the lines of other arrays. */

import { type Companions, fitting } from "./companions.js";
import { check, choice, el, fill } from "./dom.js";
import { type LineStyle, SHAPES } from "./line.js";
import { LINE_PARTS } from "./paint.js";
import { SCALES } from "./scales.js";
import type { ArrayNode } from "./api.js";
import type { State } from "./state.js";

/** Return how lines are drawn by a state. Pure. */
export function lineStyleOf(state: State): LineStyle {
  const scale = state.scaley !== undefined && state.scaley in SCALES ? state.scaley : "linear";
  const { least, most } = state;
  const areGiven = least !== undefined && most !== undefined && least < most && (scale !== "log" || least > 0);
  const shape = state.shape !== undefined && state.shape in SHAPES ? state.shape : "line";
  return { shape, scale, limits: areGiven ? [least, most] : null, hasErrors: state.errors !== false, hasGuides: state.guides !== false };
}

/** Return the part of complex numbers that is drawn as a line. Pure. */
export function linePartOf(state: State): string {
  return state.part !== undefined && state.part in LINE_PARTS ? state.part : "abs";
}

export interface LineControlsOptions {
  node: ArrayNode;
  along: number;
  state: State;
  /** Lines are drawn again from what was read. */
  onStyle: (change: Partial<State>) => void;
  /** Other elements are needed. */
  onRead: (change: Partial<State>) => void;
}

export class LineControls {
  readonly element = el("div", { class: "controls" });

  constructor(private readonly options: LineControlsOptions) {
    this.show(null);
  }

  /** Show the controls, with those for what is beside the array, once that is known. */
  show(companions: Companions | null): void {
    const { state, node, onStyle, onRead } = this.options;
    const style = lineStyleOf(state);
    const isComplex = /c(8|16)$/.test(node.numpy);
    const others = companions === null ? [] : fitting(node, this.options.along, companions).filter((path) => path !== companions.errors?.path);
    fill(
      this.element,
      isComplex ? choice("Part of complex numbers", LINE_PARTS, linePartOf(state), (part) => onStyle({ part })) : null,
      choice("Shape of the line", SHAPES, style.shape, (shape) => onStyle({ shape })),
      el("label", {}, "Values ", choice("Scale of values", SCALES, style.scale, (scaley) => onStyle({ scaley }))),
      this.limits(),
      check("Guides", style.hasGuides, (guides) => onStyle({ guides })),
      companions?.errors == null ? null : check(`Errors (${companions.errors.name})`, style.hasErrors, (errors) => onRead({ errors })),
      ...this.others(others),
    );
  }

  private limits(): HTMLElement {
    const { state, onStyle } = this.options;
    const input = (label: string, value: number | undefined): HTMLInputElement => {
      const made = el("input", { type: "text", inputmode: "decimal", size: 6, placeholder: "auto", "aria-label": label, value: value === undefined ? "" : String(value) });
      made.addEventListener("change", read);
      return made;
    };
    const read = (): void => {
      const [least, most] = [low, high].map((one) => (one.value.trim() === "" ? NaN : Number(one.value))) as [number, number];
      for (const one of [low, high]) one.setAttribute("aria-invalid", one.value.trim() !== "" && !Number.isFinite(Number(one.value)) ? "true" : "false");
      delete state.least;
      delete state.most;
      onStyle(Number.isFinite(least) && Number.isFinite(most) ? { least, most } : {});
    };
    const low: HTMLInputElement = input("Least value of the axis", state.least);
    const high: HTMLInputElement = input("Largest value of the axis", state.most);
    return el("span", {}, low, " to ", high);
  }

  private others(paths: string[]): HTMLElement[] {
    const { state, onRead } = this.options;
    const shown = (state.also ?? []).filter((path) => paths.includes(path));
    const left = paths.filter((path) => !shown.includes(path));
    const take = (also: string[]): void => {
      onRead({ also });
    };
    const chips = shown.map((path) => {
      const name = lastOf(path);
      return el("button", { type: "button", class: "chip", "aria-label": `Remove the line of ${name}`, onclick: () => take(shown.filter((one) => one !== path)) }, `${name} ×`);
    });
    if (left.length === 0) return chips;
    const texts = Object.fromEntries([["", "with …"], ...left.map((path) => [path, lastOf(path)])]);
    return [...chips, choice("Draw the line of another array too", texts, "", (path) => (path === "" ? undefined : take([...shown, path])))];
  }
}

export function lastOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
