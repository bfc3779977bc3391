/** The page's colour maps as those of H5Web, so that plots and the colour bar have the same colours. */

import { type ColorMap, INTERPOLATORS } from "@h5web/lib";
import { colorTable } from "./colors.js";

const known = INTERPOLATORS as Record<string, (share: number) => string>;

/** Return the name for H5Web of a map of the page; what is no number has the colour `none`. */
export function colorMapOf(map: string, none: string): ColorMap {
  return registered(`${map} ${none}`, () => {
    const table = colorTable(map);
    const colors = Array.from({ length: 256 }, (_, at) => `rgb(${table[3 * at]}, ${table[3 * at + 1]}, ${table[3 * at + 2]})`);
    return (share) => colors[Math.round(255 * share)] ?? none;
  });
}

/** Return the name for H5Web of one colour. */
export function oneColor(color: string): ColorMap {
  return registered(color, () => () => color);
}

function registered(name: string, make: () => (share: number) => string): ColorMap {
  known[name] ??= make();
  return name as ColorMap;
}
