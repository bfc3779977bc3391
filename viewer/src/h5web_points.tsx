/** Points by H5Web: glyphs, lines that join them, bars of errors, axes; moved, zoomed and selected by H5Web. */

import { CurveType, DataCurve, DataToHtml, DefaultInteractions, Interpolation, ScaleType, ScatterPoints, SvgElement, SvgRect, useCanvasEvent, useVisCanvasContext, VisCanvas, type AxisScaleType, type VisCanvasProps } from "@h5web/lib";
import { useFrame, useThree } from "@react-three/fiber";
import { type ReactElement, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Vector3 } from "three";
import { shareOf } from "./colors.js";
import { shortText } from "./elements.js";
import { colorMapOf, oneColor } from "./h5web_colors.js";
import { type Domain, heightsOf, type PointsData, type PointsStyle } from "./points.js";
import { edgesOf, symlogUnit } from "./scales.js";

export interface PointsLook {
  data: PointsData;
  style: PointsStyle;
  /** What is shown; `null`: everything. */
  domain: Domain | null;
  /** The point that is marked: its position in the data. */
  cursor: number | null;
  colors: { accent: string; quiet: string; text: string };
  label: string;
  onCanvas: (canvas: HTMLCanvasElement) => void;
  /** A person moved or zoomed; `null`: to everything. */
  onDomain: (domain: Domain | null) => void;
  onCursor: (at: number | null) => void;
}

/** Numbers along an axis as H5Web takes them: those of a scale about 0 are divided by the number below which it is linear. */
interface Line {
  values: Float64Array;
  edges: [number, number];
  unit: number;
  scale: AxisScaleType;
}

/** Pixels within which a point is under the cursor. */
const NEAR = 24;
const SCALES: Record<string, AxisScaleType> = { linear: ScaleType.Linear, log: ScaleType.Log, symlog: ScaleType.SymLog };

export function PointsPlot(look: PointsLook): ReactElement {
  const { data, style: { scaleX, scaleY, hasErrors, hasGuides, shape } } = look;
  const x = useMemo(() => lineOf(data.x, edgesOf([data.x], scaleX), scaleX), [data, scaleX]);
  const y = useMemo(() => lineOf(data.y, edgesOf(heightsOf(data, hasErrors), scaleY), scaleY), [data, scaleY, hasErrors]);
  const bars = useMemo(() => (hasErrors && data.errors !== null ? barsOf(x, y, data.errors) : null), [x, y, data, hasErrors]);
  const [west, east, low, high] = domainOf(look.domain, x, y);
  const axis = ({ edges, unit, scale }: Line, label: string, shown: [number, number]): VisCanvasProps["abscissaConfig"] =>
    ({ visDomain: edges, scaleType: scale, label, showGrid: hasGuides, formatTick: (value: number) => (isCrowded(scale, shown, value) ? "" : shortText(value * unit)) });
  return (
    <VisCanvas key={`${scaleX} ${scaleY}`} abscissaConfig={axis(x, data.titleX, [west, east])} ordinateConfig={axis(y, data.titleY, [low, high])}>
      <Interactions />
      <Shown x={x} y={y} look={look} />
      {bars !== null && <DataCurve abscissas={bars.x} ordinates={bars.y} color={look.colors.accent} materialProps={{ transparent: true, opacity: 0.6 }} />}
      {shape !== "points" && (
        <DataCurve abscissas={x.values} ordinates={y.values} color={look.colors.accent} width={1.5} curveType={CurveType.LineOnly} interpolation={shape === "steps" ? Interpolation.Constant : Interpolation.Linear} />
      )}
      {(shape === "points" || shape === "both") && <Dots x={x} y={y} look={look} />}
    </VisCanvas>
  );
}

function lineOf(values: Float64Array, [low, high]: [number, number], kind: string): Line {
  const unit = kind === "symlog" ? 10 ** Math.round(Math.log10(symlogUnit(low, high))) : 1; // so that marks are round numbers
  return { values: unit === 1 ? values : values.map((value) => value / unit), edges: [low / unit, high / unit], unit, scale: SCALES[kind] ?? ScaleType.Linear };
}

/** Whether a mark of an axis has no room for its text: one between the powers of ten of many numbers. */
function isCrowded(scale: AxisScaleType, [low, high]: [number, number], value: number): boolean {
  return scale === ScaleType.Log && high / low > 25 && Math.abs(Math.log10(value) - Math.round(Math.log10(value))) > 1e-9;
}

/** Make a line from the lower to the upper end of each error; an end that has no logarithm is the lower edge. */
function barsOf(x: Line, y: Line, errors: Float64Array): { x: Float64Array; y: Float64Array } {
  const [bars, ends] = [new Float64Array(3 * errors.length).fill(NaN), new Float64Array(3 * errors.length).fill(NaN)];
  errors.forEach((error, at) => {
    const value = y.values[at] ?? NaN;
    const low = value - error / y.unit;
    ends.set([y.scale === ScaleType.Log && low <= 0 ? y.edges[0] : low, value + error / y.unit], 3 * at);
    bars.fill(x.values[at] ?? NaN, 3 * at, 3 * at + 2);
  });
  return { x: bars, y: ends };
}

function Dots({ x, y, look: { data: { tint }, style: { coloring }, colors } }: { x: Line; y: Line; look: PointsLook }): ReactElement {
  const shares = useMemo(
    () => (tint === null || coloring === null ? new Float64Array(x.values.length) : tint.map((value) => shareOf(value, coloring.limits[0], coloring.limits[1], coloring.norm))),
    [x, tint, coloring],
  );
  const side = x.values.length > 20_000 ? 2 : x.values.length > 2_000 ? 4 : 7;
  const map = tint === null || coloring === null ? oneColor(colors.accent) : colorMapOf(coloring.map, colors.quiet);
  return (
    <ScatterPoints
      abscissas={x.values} ordinates={y.values} data={shares} domain={[0, 1]} scaleType={ScaleType.Linear} colorMap={map} invertColorMap={false}
      size={side * (window.devicePixelRatio || 1)}
    />
  );
}

/** Drag to move, drag with Shift to select, wheel to zoom: begun anew where the browser takes the pointer away. */
function Interactions(): ReactElement {
  const [turn, setTurn] = useState(0);
  useCanvasEvent("pointercancel", () => setTurn(turn + 1));
  return <DefaultInteractions key={turn} selectToZoom={{ modifierKey: "Shift" }} yAxisZoom={false} xSelectToZoom={false} ySelectToZoom={false} />;
}

/** Show what the page wants, tell it what a person moves to, and mark the point under the cursor. */
function Shown({ x, y, look }: { x: Line; y: Line; look: PointsLook }): ReactElement | null {
  const { domain, cursor, colors, label, onCanvas, onDomain, onCursor } = look;
  const { canvasSize: { width, height }, abscissaScale, ordinateScale, getVisibleDomains, dataToWorld } = useVisCanvasContext();
  const camera = useThree((state) => state.camera);
  const canvas = useThree((state) => state.gl.domElement);
  const invalidate = useThree((state) => state.invalidate);
  const told = useRef<Domain | null | undefined>(undefined);
  const seen = useRef("");
  const places = useMemo(
    () => ({ x: x.values.map((value) => abscissaScale(value)), y: y.values.map((value) => ordinateScale(value)) }),
    [x, y, abscissaScale, ordinateScale],
  );
  const marked = useMemo(() => (cursor === null ? [] : [new Vector3(x.values[cursor], y.values[cursor])]), [x, y, cursor]);
  useLayoutEffect(() => {
    canvas.setAttribute("aria-label", label);
    onCanvas(canvas);
  }, [canvas, label, onCanvas]);
  useEffect(() => {
    if (domain === told.current) return; // it is what a person moved to
    // H5Web moves its camera to the middle that it had when axes change: after that.
    queueMicrotask(() => {
      const [west, east, low, high] = domainOf(domain, x, y);
      const [from, to] = [dataToWorld(new Vector3(west, low)), dataToWorld(new Vector3(east, high))];
      camera.scale.set((to.x - from.x) / width, (to.y - from.y) / height, 1);
      camera.position.set((from.x + to.x) / 2, (from.y + to.y) / 2, camera.position.z);
      camera.updateMatrixWorld();
      seen.current = placeOf(camera);
      invalidate();
    });
  }, [domain, x, y, width, height, camera, dataToWorld, invalidate]);
  useFrame(() => {
    const { xVisibleDomain: [west, east], yVisibleDomain: [low, high] } = getVisibleDomains(camera);
    const found: Domain = [west * x.unit, east * x.unit, low * y.unit, high * y.unit];
    canvas.dataset["domain"] = [0, 0, width, height, ...found].join(",");
    if (seen.current === "" || seen.current === placeOf(camera)) return;
    seen.current = placeOf(camera);
    told.current = camera.scale.x === 1 && camera.scale.y === 1 ? null : found;
    onDomain(told.current);
  });
  useCanvasEvent("pointermove", ({ worldPt, sourceEvent }) => {
    if (sourceEvent.buttons === 0) onCursor(nearest(places, worldPt, camera.scale));
  });
  if (marked.length === 0) return null;
  return (
    <DataToHtml points={marked}>
      {(place) => (
        <SvgElement>
          <SvgRect coords={[place.clone().addScalar(-5), place.clone().addScalar(5)]} fill="none" stroke={colors.text} strokeWidth={1.5} />
        </SvgElement>
      )}
    </DataToHtml>
  );
}

/** Write where a camera is, to see whether it moved. */
function placeOf({ position, scale }: { position: Vector3; scale: Vector3 }): string {
  return [position.x, position.y, scale.x, scale.y].join(",");
}

/** Return the edges of what is shown, in the numbers that H5Web has; where those that are given have no logarithm, of everything. */
function domainOf(domain: Domain | null, x: Line, y: Line): Domain {
  const part = ({ edges, unit, scale }: Line, given: [number, number] | undefined): [number, number] => {
    const [from, to] = given === undefined ? edges : [given[0] / unit, given[1] / unit];
    return from < to && (scale !== ScaleType.Log || from > 0) ? [from, to] : edges;
  };
  return domain === null ? [...x.edges, ...y.edges] : [...part(x, [domain[0], domain[1]]), ...part(y, [domain[2], domain[3]])];
}

/** Return the point that is near a place, by its distance in pixels; `null`: there is none. */
function nearest({ x, y }: { x: Float64Array; y: Float64Array }, to: Vector3, scale: Vector3): number | null {
  let [found, least] = [-1, NEAR];
  for (let at = 0; at < x.length; at++) {
    const distance = Math.hypot(((x[at] ?? NaN) - to.x) / scale.x, ((y[at] ?? NaN) - to.y) / scale.y);
    if (distance < least) [found, least] = [at, distance];
  }
  return found < 0 ? null : found;
}
