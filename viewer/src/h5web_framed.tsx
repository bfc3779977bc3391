/** What is in the frame of a plot, by H5Web: pictures, which the page has coloured, as textures; curves and points. */

import { CurveType, DataCurve, ScaleType, ScatterPoints, useVisCanvasContext, VisCanvas, type VisCanvasProps } from "@h5web/lib";
import { useFrame, useThree } from "@react-three/fiber";
import { type ReactElement, useEffect, useLayoutEffect, useMemo } from "react";
import { AdditiveBlending, DataTexture, LinearFilter, NearestFilter, NormalBlending, ShaderMaterial, Vector4 } from "three";
import type { Frame, Look, Patch, Stroke } from "./frame.js";
import { colorMapOf, oneColor } from "./h5web_colors.js";

export interface FramedLook extends Look {
  /** A picture is drawn. */
  onDrawn: () => void;
}

export function FramedPlot({ frame, patches, strokes, onDrawn }: FramedLook): ReactElement {
  const { width, height } = frame;
  const [abscissas, ordinates] = useMemo((): VisCanvasProps["abscissaConfig"][] => [{ visDomain: [0, width] }, { visDomain: [0, height], flip: true }], [width, height]);
  if (abscissas === undefined || ordinates === undefined) throw new Error("a plot has two axes");
  return (
    <VisCanvas showAxes={false} abscissaConfig={abscissas} ordinateConfig={ordinates}>
      <Canvas frame={frame} onDrawn={onDrawn} />
      {patches.map((patch, at) => <Picture key={patch.texels.id} patch={patch} order={at} frame={frame} />)}
      {strokes.map((stroke, at) => <Curve key={at} stroke={stroke} frame={frame} />)}
    </VisCanvas>
  );
}

/** Tell the page of the canvas, and the canvas what is drawn. */
function Canvas({ frame: { label, facts, onCanvas }, onDrawn }: { frame: Frame; onDrawn: () => void }): null {
  const canvas = useThree((state) => state.gl.domElement);
  const invalidate = useThree((state) => state.invalidate);
  const { canvasSize } = useVisCanvasContext();
  useLayoutEffect(() => onCanvas(canvas), [canvas, onCanvas]);
  useLayoutEffect(() => canvas.setAttribute("aria-label", label), [canvas, label]);
  useLayoutEffect(() => invalidate(), [facts, invalidate]);
  useFrame(() => {
    Object.assign(canvas.dataset, facts, { drawn: `${canvasSize.width},${canvasSize.height}` });
    onDrawn();
  });
  return null;
}

const VERTEX = "uniform vec4 share; varying vec2 place; void main() { place = mix(share.xw, share.zy, uv); gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }";
/** Bytes of a texture are those of the screen: no space of colours in between. */
const FRAGMENT = "uniform sampler2D picture; varying vec2 place; void main() { gl_FragColor = texture2D(picture, place); }";
/** Depth of a layer, which is more than the patches behind one another in it, and of one of these. */
const DEPTHS = { layer: 0.5, patch: 0.01 };

function Picture({ patch, order, frame: { width, height } }: { patch: Patch; order: number; frame: Frame }): ReactElement {
  const { texels, left, right, top, bottom, share, layer, behind, isAdded, isSmooth } = patch;
  const invalidate = useThree((state) => state.invalidate);
  const material = useMemo(() => {
    const picture = new DataTexture(texels.data, texels.width, texels.height);
    picture.needsUpdate = true;
    return new ShaderMaterial({ uniforms: { picture: { value: picture }, share: { value: new Vector4() } }, vertexShader: VERTEX, fragmentShader: FRAGMENT, transparent: true, premultipliedAlpha: true });
  }, [texels]);
  useEffect(() => () => {
    (material.uniforms["picture"]?.value as DataTexture).dispose();
    material.dispose();
  }, [material]);
  useLayoutEffect(() => {
    const picture = material.uniforms["picture"]?.value as DataTexture;
    const filter = isSmooth ? LinearFilter : NearestFilter;
    if (picture.minFilter !== filter || picture.magFilter !== filter) {
      [picture.minFilter, picture.magFilter] = [filter, filter];
      picture.needsUpdate = true;
    }
    (material.uniforms["share"]?.value as Vector4).set(share.left, share.top, share.right, share.bottom);
    material.blending = isAdded ? AdditiveBlending : NormalBlending;
    invalidate();
  });
  return (
    <mesh
      position={[(left + right) / 2 - width / 2, height / 2 - (top + bottom) / 2, DEPTHS.layer * layer - DEPTHS.patch * behind]}
      scale={[right - left, bottom - top, 1]} renderOrder={order} material={material} frustumCulled={false}
    >
      <planeGeometry />
    </mesh>
  );
}

const SHARES: [number, number] = [0, 1];

function Curve({ stroke: { x, y, moved, color, width, opacity, hasLine, side, tint }, frame }: { stroke: Stroke; frame: Frame }): ReactElement {
  const material = opacity < 1 ? { transparent: true, opacity } : {};
  const shares = useMemo(() => tint?.shares ?? new Float64Array(x.length), [x, tint?.shares]);
  const { left, top, scaleX, scaleY } = moved ?? { left: 0, top: 0, scaleX: 1, scaleY: 1 };
  const middle: [number, number, number] = [left + ((scaleX - 1) * frame.width) / 2, ((1 - scaleY) * frame.height) / 2 - top, 0]; // H5Web counts from the middle
  return (
    <group position={middle} scale={[scaleX, scaleY, 1]}>
      {hasLine && x.length > 1 && <DataCurve abscissas={x} ordinates={y} color={color} width={width} curveType={CurveType.LineOnly} materialProps={material} />}
      {side > 0 && (
        <ScatterPoints
          abscissas={x} ordinates={y} data={shares} domain={SHARES} scaleType={ScaleType.Linear} colorMap={tint === undefined ? oneColor(color) : colorMapOf(tint.map, tint.none)} invertColorMap={false}
          size={side * (window.devicePixelRatio || 1)}
        />
      )}
    </group>
  );
}
