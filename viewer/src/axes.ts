/** The axes of an array: names, units, and the coordinates along them. */

import type { Api, ArrayNode } from "./api.js";
import { markTexts, shortText } from "./elements.js";
import { type Tick, ticks, valueTicks } from "./ticks.js";

const MAX_LABELS = 20_000;

export class Axes {
  /** Coordinates along each axis, where they were read. */
  private readonly labels: (unknown[] | null)[];
  private readonly units: (string | null)[];

  constructor(
    private readonly api: Api,
    private readonly node: ArrayNode,
  ) {
    this.labels = node.shape.map(() => null);
    this.units = node.shape.map(() => null);
  }

  /** Read the arrays of coordinates; an axis whose array cannot be read has indices. Returns whether there are any. */
  async read(): Promise<boolean> {
    await Promise.all(
      this.node.coordinates.map(async (path, axis) => {
        if (path === null || path === this.node.path || (this.node.shape[axis] ?? 0) > MAX_LABELS) return;
        try {
          const found = await this.api.slice(path, "");
          this.labels[axis] = found.data as unknown[];
          this.units[axis] = found.units;
        } catch {
          this.labels[axis] = null;
        }
      }),
    );
    return this.labels.some((one) => one !== null);
  }

  nameOf(axis: number): string {
    return this.node.dimensions[axis] ?? this.imageAxis(axis)?.name ?? `dim_${axis}`;
  }

  unitOf(axis: number): string | null {
    return this.units[axis] ?? (this.scaleOf(axis) === undefined ? null : (this.imageAxis(axis)?.unit ?? null));
  }

  /** Write the name of an axis, with the unit of its coordinates. */
  titleOf(axis: number): string {
    const unit = this.unitOf(axis);
    return unit === null ? this.nameOf(axis) : `${this.nameOf(axis)} (${unit})`;
  }

  hasLabels(axis: number): boolean {
    return this.labels[axis] !== null || this.scaleOf(axis) !== undefined;
  }

  /** Write the coordinate of an index, or the index. */
  labelOf(axis: number, index: number): string {
    const label = this.labels[axis]?.[index];
    if (label === undefined || label === null) {
      const scale = this.scaleOf(axis);
      return scale === undefined ? String(index) : shortText(index * scale);
    }
    if (typeof label === "number") return shortText(label);
    return String(label).replace(/\.0+$/, "").replace(/T00:00(:00)?$/, "");
  }

  /** Write an index, with its coordinate where there is one. */
  placeOf(axis: number, index: number): string {
    return this.hasLabels(axis) ? `${index} (${this.labelOf(axis, index)})` : String(index);
  }

  /** Return about `count` places between two indices with their labels: round coordinates where they are numbers in order. */
  ticksOf(axis: number, from: number, to: number, count: number): Tick[] {
    const numbers = this.numbers(axis);
    const scale = this.scaleOf(axis);
    if (numbers !== null && isInOrder(numbers)) {
      const ends = [from, to - 1].map((at) => numbers[Math.min(numbers.length - 1, Math.max(0, Math.round(at)))] ?? 0);
      return marked(valueTicks(Math.min(...ends), Math.max(...ends), count), (value) => positionOf(value, numbers));
    }
    if (scale !== undefined && scale > 0) return marked(valueTicks(from * scale, (to - 1) * scale, count), (value) => value / scale);
    return ticks(from, to, count).map((at) => ({ at, text: this.labelOf(axis, at) }));
  }

  /** Return the coordinates along an axis if all are numbers. */
  numbers(axis: number): number[] | null {
    const labels = this.labels[axis];
    return labels?.every((one) => typeof one === "number") ? labels : null;
  }

  private imageAxis(axis: number): { name: string; type: string | null; unit: string | null } | undefined {
    const axes = this.node.pyramid?.axes ?? [];
    return axes.length === this.node.shape.length ? axes[axis] : undefined;
  }

  /** Return the physical size of an element of an image; `undefined` where it is unknown, or where an axis has no unit. */
  private scaleOf(axis: number): number | undefined {
    const { pyramid } = this.node;
    const unit = this.imageAxis(axis)?.unit;
    if (pyramid === undefined || unit === undefined || unit === null) return undefined;
    const own = this.node.path.slice(pyramid.group ? pyramid.group.length + 1 : 0);
    return pyramid.scales[pyramid.paths.indexOf(own)]?.[axis];
  }
}

function marked(values: number[], place: (value: number) => number): Tick[] {
  return markTexts(values).map((text, one) => ({ at: place(values[one] ?? NaN), text }));
}

function isInOrder(numbers: number[]): boolean {
  const isRising = (numbers[1] ?? 0) > (numbers[0] ?? 0);
  return numbers.length > 1 && numbers.every((one, at) => at === 0 || (isRising ? one > (numbers[at - 1] ?? 0) : one < (numbers[at - 1] ?? 0)));
}

/** Return the position of a number among coordinates that rise or fall, in elements; beyond the ends by the last step. */
export function positionOf(value: number, coordinates: number[]): number {
  const last = coordinates.length - 1;
  const sign = (coordinates[last] ?? 0) >= (coordinates[0] ?? 0) ? 1 : -1;
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sign * (coordinates[middle] ?? 0) <= sign * value) low = middle;
    else high = middle;
  }
  const [from, to] = [coordinates[low] ?? 0, coordinates[high] ?? 0];
  return to === from ? low : low + (value - from) / (to - from);
}
