/** What is in the frame of a plot, without WebGL: by the canvas of two dimensions that every browser has. */

import { colorTable } from "./colors.js";
import { el, sized } from "./dom.js";
import type { Look, Patch, Stroke } from "./frame.js";
import type { Texels } from "./layer.js";

/** Pictures as they are drawn from. */
const pictures = new WeakMap<Texels, HTMLCanvasElement>();

/** Draw pictures, curves and points on a canvas. */
export function drawFlat(canvas: HTMLCanvasElement, { frame: { width, height, label, facts }, patches, strokes }: Look): void {
  const context = sized(canvas, width, height);
  for (const layer of new Set(patches.map((patch) => patch.layer).sort((a, b) => a - b))) {
    const parts = patches.filter((patch) => patch.layer === layer);
    const drawn = el("canvas");
    const own = sized(drawn, width, height);
    for (const patch of parts.sort((a, b) => b.behind - a.behind)) drawPatch(own, patch);
    context.globalCompositeOperation = parts[0]?.isAdded === true ? "lighter" : "source-over";
    context.drawImage(drawn, 0, 0, width, height);
  }
  context.globalCompositeOperation = "source-over";
  for (const stroke of strokes) drawStroke(context, stroke);
  canvas.setAttribute("aria-label", label);
  Object.assign(canvas.dataset, facts);
}

/** Draw a picture in place of what is there of its layer. */
function drawPatch(context: CanvasRenderingContext2D, { texels, left, right, top, bottom, share, isSmooth }: Patch): void {
  const { width, height } = texels;
  // Shares run from the left edge to the right one of the plot: backwards where the picture is mirrored.
  const [isMirrored, isTurned] = [share.left > share.right, share.top > share.bottom];
  const [x, y] = [Math.min(share.left, share.right) * width, Math.min(share.top, share.bottom) * height];
  context.clearRect(left, top, right - left, bottom - top);
  context.save();
  context.imageSmoothingEnabled = isSmooth;
  context.translate(isMirrored ? right : left, isTurned ? bottom : top);
  context.scale(isMirrored ? -1 : 1, isTurned ? -1 : 1);
  context.drawImage(pictureOf(texels), x, y, Math.abs(share.right - share.left) * width, Math.abs(share.bottom - share.top) * height, 0, 0, right - left, bottom - top);
  context.restore();
}

function pictureOf(texels: Texels): HTMLCanvasElement {
  const known = pictures.get(texels);
  if (known !== undefined) return known;
  const { width, height, data } = texels;
  const made = el("canvas", { width, height });
  const image = new ImageData(width, height);
  image.data.set(data);
  for (let at = 3; at < data.length; at += 4) {
    const opacity = data[at] ?? 0;
    if (opacity > 0 && opacity < 255) for (let part = at - 3; part < at; part++) image.data[part] = ((data[part] ?? 0) * 255) / opacity;
  }
  made.getContext("2d")?.putImageData(image, 0, 0);
  pictures.set(texels, made);
  return made;
}

function drawStroke(context: CanvasRenderingContext2D, { x, y, moved, color, width, opacity, hasLine, side, tint }: Stroke): void {
  const { left, top, scaleX, scaleY } = moved ?? { left: 0, top: 0, scaleX: 1, scaleY: 1 };
  const places = Array.from(x, (place, at): [number, number] => [left + scaleX * place, top + scaleY * (y[at] ?? NaN)]);
  context.globalAlpha = opacity;
  [context.strokeStyle, context.fillStyle, context.lineWidth, context.lineJoin] = [color, color, width, "round"];
  if (hasLine) {
    context.beginPath();
    let isDown = false;
    for (const [toX, toY] of places) {
      const isPlace = Number.isFinite(toX) && Number.isFinite(toY);
      if (isPlace && isDown) context.lineTo(toX, toY);
      else if (isPlace) context.moveTo(toX, toY);
      isDown = isPlace;
    }
    context.stroke();
  }
  const table = tint === undefined ? null : colorTable(tint.map);
  if (side > 0) {
    places.forEach(([atX, atY], at) => {
      const entry = 3 * Math.round(255 * (tint?.shares[at] ?? NaN));
      if (tint !== undefined && table !== null) context.fillStyle = Number.isNaN(entry) ? tint.none : `rgb(${table[entry]}, ${table[entry + 1]}, ${table[entry + 2]})`;
      if (!Number.isFinite(atX) || !Number.isFinite(atY)) return;
      context.beginPath();
      context.arc(atX, atY, side / 2, 0, 2 * Math.PI);
      context.fill();
    });
  }
  context.globalAlpha = 1;
}
