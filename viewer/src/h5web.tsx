/** H5Web's parts on the page: each is an element of React within an element of the page. Loaded when a plot needs them. */

import { createElement, type FunctionComponent } from "react";
import { createRoot } from "react-dom/client";
import type { Drawn } from "./graphics.js";
import { LinePlot, type LineLook } from "./h5web_line.js";
import { PlanePlot, type PlaneLook } from "./h5web_plane.js";
import { PointsPlot, type PointsLook } from "./h5web_points.js";
import { SurfacePlot, type SurfaceLook } from "./h5web_surface.js";

function draw<Look extends object>(part: FunctionComponent<Look>, host: HTMLElement, look: Look): Drawn<Look> {
  const root = createRoot(host);
  const update = (next: Look): void => root.render(createElement(part, next));
  update(look);
  return { update, close: () => root.unmount() };
}

/** Draw a surface in an element. */
export const drawSurface = (host: HTMLElement, look: SurfaceLook): Drawn<SurfaceLook> => draw(SurfacePlot, host, look);

/** Draw points in an element. */
export const drawPoints = (host: HTMLElement, look: PointsLook): Drawn<PointsLook> => draw(PointsPlot, host, look);

/** Draw lines in an element. */
export const drawLine = (host: HTMLElement, look: LineLook): Drawn<LineLook> => draw(LinePlot, host, look);

/** Draw a plane in an element. */
export const drawPlane = (host: HTMLElement, look: PlaneLook): Drawn<PlaneLook> => draw(PlanePlot, host, look);
