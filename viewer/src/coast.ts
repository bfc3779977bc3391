/** Coast lines over a plane of longitude and latitude. They come with the page (`coast.json`), and are read when first needed. */

import { positionOf } from "./axes.js";

/** Lines of longitudes and latitudes in tenths of a degree: the first point, then the steps to the next. */
type Lines = number[][];

let lines: Promise<Lines> | null = null;

/** Whether an axis is a longitude or a latitude, by the units of its coordinates, or by its name where they have none. */
export function isGeographic(kind: "lon" | "lat", name: string, units: string | null): boolean {
  const pattern = kind === "lon" ? /^degrees?_?e(ast)?$/i : /^degrees?_?n(orth)?$/i;
  if (units !== null && units !== "") return pattern.test(units.trim());
  return kind === "lon" ? /^lon(gitude)?$/i.test(name) : /^lat(itude)?$/i.test(name);
}

/** Return coast lines as a path of SVG in elements; the longitudes may be −180 to 180, 0 to 360, or a part of either. */
export async function coastPath(longitudes: number[], latitudes: number[]): Promise<string> {
  lines ??= fetch("coast.json").then(async (answer) => (await answer.json()) as Lines);
  const found = await lines;
  const [west, east] = [Math.min(...longitudes), Math.max(...longitudes)];
  const paths = [-360, 0, 360].flatMap((turn) => found.map((line) => placed(line, turn, west, east, longitudes, latitudes))).filter((path) => path.length > 0);
  const text = (place: number): string => String(Math.round((place + 0.5) * 1e4) / 1e4);
  return paths.map((path) => `M${path.map(([x, y]) => `${text(x)} ${text(y)}`).join("L")}`).join("");
}

/** Place one line on the axes, turned by whole circles; empty where none of it is between west and east. */
function placed(line: number[], turn: number, west: number, east: number, longitudes: number[], latitudes: number[]): [number, number][] {
  const path: [number, number][] = [];
  let [longitude, latitude] = [turn, 0];
  let isNear = false;
  for (let at = 0; at + 1 < line.length; at += 2) {
    longitude += (line[at] ?? 0) / 10;
    latitude += (line[at + 1] ?? 0) / 10;
    isNear ||= longitude >= west && longitude <= east;
    path.push([positionOf(longitude, longitudes), positionOf(latitude, latitudes)]);
  }
  return isNear ? path : [];
}
