/** The frame of a plot of H5Web: its canvas, which draws in pixels, axes with marks that the page gives, and SVG over the plot. */

import { useVisCanvasContext, VisCanvas, type VisCanvasProps } from "@h5web/lib";
import { useFrame, useThree } from "@react-three/fiber";
import { type ReactElement, type ReactNode, useLayoutEffect, useMemo } from "react";
import { type Frame, MARGIN, type Mark, type Selection } from "./frame.js";

/** Pixels for the text of a mark. */
const ROOM = { x: 88, y: MARGIN.left - 24 };

/** `over`: elements of SVG over the plot, in its pixels; `children`: what H5Web draws, in pixels from the left and the top. */
export function Framed({ frame, over, children }: { frame: Frame; over?: ReactNode; children: ReactNode }): ReactElement {
  const { width, height } = frame;
  const [abscissas, ordinates] = useMemo((): VisCanvasProps["abscissaConfig"][] => [{ visDomain: [0, width] }, { visDomain: [0, height], flip: true }], [width, height]);
  if (abscissas === undefined || ordinates === undefined) throw new Error("a plot has two axes");
  const { left, top, right, bottom } = MARGIN;
  return (
    <>
      <svg className="axes">
        <g transform={`translate(${left}, ${top})`}>
          {frame.hasGuides && <Guides frame={frame} />}
          <Axes frame={frame} />
        </g>
      </svg>
      <div className="framed" style={{ inset: `${top}px ${right}px ${bottom}px ${left}px` }}>
        <VisCanvas showAxes={false} abscissaConfig={abscissas} ordinateConfig={ordinates}>
          <Canvas frame={frame} />
          {children}
        </VisCanvas>
      </div>
      <svg className="axes over">
        <svg x={left} y={top} width={width} height={height}>{over}</svg>
      </svg>
    </>
  );
}

/** Tell the page of the canvas, and the canvas what is drawn. */
function Canvas({ frame: { label, facts, onCanvas } }: { frame: Frame }): null {
  const canvas = useThree((state) => state.gl.domElement);
  const invalidate = useThree((state) => state.invalidate);
  const { canvasSize } = useVisCanvasContext();
  useLayoutEffect(() => onCanvas(canvas), [canvas, onCanvas]);
  useLayoutEffect(() => canvas.setAttribute("aria-label", label), [canvas, label]);
  useLayoutEffect(() => invalidate(), [facts, invalidate]);
  useFrame(() => {
    Object.assign(canvas.dataset, facts, { drawn: `${canvasSize.width},${canvasSize.height}` });
  });
  return null;
}

/** Lines across the plot at the marks of its axes. */
export function Guides({ frame: { right, bottom, x, y } }: { frame: Frame }): ReactElement {
  return (
    <>
      {x.marks.map(({ at }, number) => <line key={`x ${number}`} className="guide" x1={at} x2={at} y2={bottom} />)}
      {y.marks.map(({ at }, number) => <line key={`y ${number}`} className="guide" y1={at} y2={at} x2={right} />)}
    </>
  );
}

function Axes({ frame: { right, bottom, x, y } }: { frame: Frame }): ReactElement {
  return (
    <>
      {x.marks.map(({ at, text }, number) => (
        <g key={number} transform={`translate(${at}, 0)`}>
          <line y1={bottom} y2={bottom + 4} />
          <text y={bottom + 12} textAnchor="middle" {...squeezed(text, ROOM.x)}>{text}</text>
        </g>
      ))}
      {y.marks.map(({ at, text }: Mark, number) => (
        <g key={number} transform={`translate(0, ${at})`}>
          <line x1={-4} x2={0} />
          <text x={-6} textAnchor="end" {...squeezed(text, ROOM.y)}>{text}</text>
        </g>
      ))}
      <text className="title" x={right / 2} y={bottom + 30} textAnchor="middle">{x.title}</text>
      <text className="title" transform={`translate(${9 - MARGIN.left}, ${bottom / 2}) rotate(-90)`} textAnchor="middle">{y.title}</text>
    </>
  );
}

/** Make a text narrower that has no room. */
function squeezed(text: string, room: number): { textLength?: number; lengthAdjust?: string } {
  return text.length * 6 > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
}

/** The rectangle that a person draws. */
export function Selected({ selection }: { selection: Selection | null }): ReactElement | null {
  if (selection === null) return null;
  const [[x, y], [toX, toY]] = [selection.from, selection.to];
  return <rect className="selection" x={Math.min(x, toX)} y={Math.min(y, toY)} width={Math.abs(toX - x)} height={Math.abs(toY - y)} />;
}
