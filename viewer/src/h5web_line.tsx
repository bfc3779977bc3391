/** Lines of numbers by H5Web: curves in pixels, with the mark, the cursor and the names of the curves over them. */

import { CurveType, DataCurve, ScaleType, ScatterPoints } from "@h5web/lib";
import { type ReactElement, useMemo } from "react";
import { Framed, Selected } from "./h5web_frame.js";
import { oneColor } from "./h5web_colors.js";
import type { Frame, Selection } from "./frame.js";

/** Places in pixels from the left and the top of the plot; NaN parts lines. */
export interface Stroke {
  x: Float64Array;
  y: Float64Array;
  color: string;
  width: number;
  opacity: number;
  hasLine: boolean;
  hasPoints: boolean;
}

export interface LineLook {
  frame: Frame;
  strokes: Stroke[];
  /** Where an index is marked, and where the cursor is, in pixels from the left; `null`: nowhere. */
  mark: number | null;
  cursor: number | null;
  selection: Selection | null;
  /** Names of the curves, where there are more than one. */
  names: { text: string; color: string }[];
}

/** Side of a point, in pixels. */
const SIDE = 4;
const SHARES: [number, number] = [0, 1];

export function LinePlot({ frame, strokes, mark, cursor, selection, names }: LineLook): ReactElement {
  const { width, height } = frame;
  const over = (
    <>
      {mark !== null && <line className="marked" x1={mark} x2={mark} y2={height} />}
      {cursor !== null && <line x1={cursor} x2={cursor} y2={height} />}
      {names.map(({ text, color }, at) => (
        <g key={at} transform={`translate(${width - 18}, ${8 + 15 * at})`}>
          <line x2={14} style={{ stroke: color, strokeWidth: 3 }} />
          <text x={-6} textAnchor="end">{text}</text>
        </g>
      ))}
      <Selected selection={selection} />
    </>
  );
  return <Framed frame={frame} over={over}>{strokes.map((stroke, at) => <Curve key={at} stroke={stroke} />)}</Framed>;
}

function Curve({ stroke: { x, y, color, width, opacity, hasLine, hasPoints } }: { stroke: Stroke }): ReactElement {
  const material = opacity < 1 ? { transparent: true, opacity } : {};
  const shares = useMemo(() => new Float32Array(x.length), [x]); // all of one colour
  return (
    <>
      {hasLine && x.length > 1 && <DataCurve abscissas={x} ordinates={y} color={color} width={width} curveType={CurveType.LineOnly} materialProps={material} />}
      {hasPoints && (
        <ScatterPoints
          abscissas={x} ordinates={y} data={shares} domain={SHARES} scaleType={ScaleType.Linear} colorMap={oneColor(color)} invertColorMap={false}
          size={SIDE * (window.devicePixelRatio || 1)}
        />
      )}
    </>
  );
}
