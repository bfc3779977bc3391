/** H5Web's parts on the page: each is an element of React within an element of the page. Loaded when a plot needs them. */

import { createElement, type FunctionComponent } from "react";
import { createRoot } from "react-dom/client";
import type { Drawn } from "./graphics.js";
import { FramedPlot, type FramedLook } from "./h5web_framed.js";
import { SurfacePlot, type SurfaceLook } from "./h5web_surface.js";

function draw<Look extends object>(part: FunctionComponent<Look>, host: HTMLElement, look: Look): Drawn<Look> {
  const root = createRoot(host);
  const update = (next: Look): void => root.render(createElement(part, next));
  update(look);
  return { update, close: () => root.unmount() };
}

/** Draw a surface in an element. */
export const drawSurface = (host: HTMLElement, look: SurfaceLook): Drawn<SurfaceLook> => draw(SurfacePlot, host, look);

/** Draw what is in the frame of a plot in an element. */
export const drawFramed = (host: HTMLElement, look: FramedLook): Drawn<FramedLook> => draw(FramedPlot, host, look);
