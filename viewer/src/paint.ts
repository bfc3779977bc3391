/** Colours of the elements of a tile. Pure: elements in, red, green, blue and opacity out. */

import type { Packing } from "./api.js";
import { colorTable, shareOf } from "./colors.js";
import { type Elements, unpack } from "./elements.js";

/** Write the colour of one element to four bytes that are 0: `at` is its position in the tile, `color` the distance of its parts. */
export type Paint = (elements: Elements, at: number, color: number, out: Uint8ClampedArray, to: number) => void;

/** Parts of complex numbers that are drawn. */
export const PARTS: Record<string, string> = { abs: "magnitude", phase: "phase", both: "phase, darkened by the magnitude", real: "real part", imag: "imaginary part" };

/** Parts of complex numbers that are drawn as lines: the last is the phase without its jumps of a whole turn. */
export const LINE_PARTS: Record<string, string> = { abs: "magnitude", phase: "phase", unwrapped: "phase, unwrapped", real: "real part", imag: "imaginary part" };

export interface Coloring {
  map: string;
  limits: [number, number];
  norm: string;
}

/** Return the number that is drawn for an element: decoded by its packing, or a part of a complex number. */
export function numberOf(elements: Elements, at: number, packing: Packing | null, part: string): number {
  if (part === "abs" || part === "both") return unpack(packing, elements.number(at));
  const element = elements.at(at);
  if (!Array.isArray(element)) return unpack(packing, elements.number(at));
  if (part === "real") return element[0];
  return part === "imag" ? element[1] : Math.atan2(element[1], element[0]);
}

/** Paint numbers by a colour map. No number is transparent. */
export function paintNumbers({ map, limits: [low, high], norm }: Coloring, packing: Packing | null, part: string): Paint {
  const table = colorTable(map);
  return (elements, at, _color, out, to) => {
    const share = shareOf(numberOf(elements, at, packing, part), low, high, norm);
    if (Number.isNaN(share)) return;
    const entry = 3 * Math.round(255 * share);
    out[to] = table[entry] ?? 0;
    out[to + 1] = table[entry + 1] ?? 0;
    out[to + 2] = table[entry + 2] ?? 0;
    out[to + 3] = 255;
  };
}

/** Paint complex numbers: the hue from the phase, the light from where the magnitude is between the limits. */
export function paintPhases({ map, limits: [low, high], norm }: Coloring): Paint {
  const table = colorTable(map);
  return (elements, at, _color, out, to) => {
    const [light, turn] = [shareOf(numberOf(elements, at, null, "abs"), low, high, norm), shareOf(numberOf(elements, at, null, "phase"), -Math.PI, Math.PI)];
    if (Number.isNaN(light) || Number.isNaN(turn)) return;
    const entry = 3 * Math.round(255 * turn);
    for (let part = 0; part < 3; part++) out[to + part] = light * (table[entry + part] ?? 0);
    out[to + 3] = 255;
  };
}

/** Return phases without jumps of more than half a turn between neighbours; what is no number has no neighbours. Pure. */
export function unwrapped(phases: Float64Array): Float64Array {
  let [turns, last] = [0, NaN];
  return phases.map((phase) => {
    if (!Number.isNaN(last) && !Number.isNaN(phase)) turns -= Math.round((phase - last) / (2 * Math.PI));
    if (!Number.isNaN(phase)) last = phase;
    return phase + turns * 2 * Math.PI;
  });
}

/** Paint bytes of red, green, blue (or from blue to red), and opacity where there is a fourth. */
export function paintParts(parts: number, isReversed = false): Paint {
  return (elements, at, color, out, to) => {
    for (let part = 0; part < 4; part++) {
      const from = isReversed && part < 3 ? 2 - part : part;
      out[to + part] = part < parts ? elements.number(at + from * color) : 255;
    }
  };
}

/** Paint numbers between black and one colour, for channels whose light is added. */
export function paintChannel(rgb: [number, number, number], [low, high]: [number, number]): Paint {
  return (elements, at, _color, out, to) => {
    const share = shareOf(elements.number(at), low, high);
    if (Number.isNaN(share)) return;
    for (let part = 0; part < 3; part++) out[to + part] = share * (rgb[part] ?? 0);
    out[to + 3] = 255;
  };
}

/** Paint numbers of labels: each in a colour of its own, half transparent; 0, which is no label, not at all. */
export function paintLabels(): Paint {
  return (elements, at, _color, out, to) => {
    const label = elements.number(at);
    if (label === 0 || Number.isNaN(label)) return;
    const [red, green, blue] = labelColor(label);
    out[to] = red;
    out[to + 1] = green;
    out[to + 2] = blue;
    out[to + 3] = 140;
  };
}

/** Return a saturated colour for a label; neighbouring numbers get distant hues (by the golden ratio). */
export function labelColor(label: number): [number, number, number] {
  const hue = (Math.abs(label) * 0.6180339887) % 1;
  const part = (shift: number): number => Math.round(255 * Math.min(1, Math.max(0, Math.abs(((hue + shift) % 1) * 6 - 3) - 1)));
  return [part(0), part(2 / 3), part(1 / 3)];
}
