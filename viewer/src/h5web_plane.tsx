/** A plane by H5Web: pictures of tiles, which the page has coloured, as textures; lines, marks and the selection over them. */

import { useThree } from "@react-three/fiber";
import { memo, type ReactElement, useEffect, useLayoutEffect, useMemo } from "react";
import { AdditiveBlending, DataTexture, LinearFilter, NearestFilter, NormalBlending, ShaderMaterial, Vector4 } from "three";
import { Framed, Guides, Selected } from "./h5web_frame.js";
import type { Frame, Selection } from "./frame.js";
import type { Texels } from "./layer.js";
import type { Lines } from "./overlay.js";

/** A picture on the plot: edges in pixels from the left and the top, and the shares of the picture that are there. */
export interface Patch {
  texels: Texels;
  left: number;
  right: number;
  top: number;
  bottom: number;
  /** Where the edges are in the picture: 0 at its first column and row, 1 at its end. */
  share: { left: number; right: number; top: number; bottom: number };
  /** Patches of a larger number cover those of a smaller one, also where they are transparent, if they are drawn before them. */
  depth: number;
  /** Its light is added to what is below. */
  isAdded: boolean;
  isSmooth: boolean;
}

/** A rectangle about an element, in pixels. */
export interface Marked {
  x: number;
  y: number;
  width: number;
  height: number;
  color: string;
}

export interface PlaneLook {
  frame: Frame;
  patches: Patch[];
  lines: Lines[];
  /** Coast lines: a path in elements, and the plane's place in pixels: left, top, and pixels per element (negative: it runs the other way). */
  coast: { path: string; left: number; top: number; scaleX: number; scaleY: number; columns: number; rows: number } | null;
  marks: Marked[];
  selection: Selection | null;
  hasGuides: boolean;
}

export function PlanePlot({ frame, patches, lines, coast, marks, selection, hasGuides }: PlaneLook): ReactElement {
  const over = (
    <>
      {lines.map(({ path, kind }, at) => <path key={at} className={kind} d={path} />)}
      {coast !== null && <Coast {...coast} />}
      {marks.map(({ x, y, width, height, color }, at) => (
        <g key={at} fill="none">
          <rect x={x - 1} y={y - 1} width={width + 2} height={height + 2} stroke="#000" />
          <rect x={x} y={y} width={width} height={height} stroke={color} />
        </g>
      ))}
      {hasGuides && <Guides frame={frame} />}
      <Selected selection={selection} />
    </>
  );
  return <Framed frame={frame} over={over}>{patches.map((patch, at) => <Tile key={patch.texels.id} patch={patch} order={at} width={frame.width} height={frame.height} />)}</Framed>;
}

const Coast = memo(function Coast({ path, left, top, scaleX, scaleY, columns, rows }: NonNullable<PlaneLook["coast"]>): ReactElement {
  const [width, height] = [columns * scaleX, rows * scaleY];
  return (
    <svg x={left + Math.min(0, width)} y={top + Math.min(0, height)} width={Math.abs(width)} height={Math.abs(height)}>
      {["coast wide", "coast"].map((kind) => <path key={kind} className={kind} d={path} transform={`translate(${Math.max(0, -width)}, ${Math.max(0, -height)}) scale(${scaleX}, ${scaleY})`} />)}
    </svg>
  );
});

const VERTEX = "uniform vec4 share; varying vec2 place; void main() { place = mix(share.xw, share.zy, uv); gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }";
/** Bytes of a texture are those of the screen: no space of colours in between. */
const FRAGMENT = "uniform sampler2D picture; varying vec2 place; void main() { gl_FragColor = texture2D(picture, place); }";

function Tile({ patch, order, width, height }: { patch: Patch; order: number; width: number; height: number }): ReactElement {
  const { texels, left, right, top, bottom, share, depth, isAdded, isSmooth } = patch;
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
      position={[(left + right) / 2 - width / 2, height / 2 - (top + bottom) / 2, depth / 100]} scale={[right - left, bottom - top, 1]}
      renderOrder={order} material={material} frustumCulled={false}
    >
      <planeGeometry />
    </mesh>
  );
}
