/** A surface by H5Web: heights in rows, seen by a camera that the page turns. */

import { SurfaceVis } from "@h5web/lib";
import { useFrame, useThree } from "@react-three/fiber";
import ndarray, { type NdArray } from "ndarray";
import { type ReactElement, useLayoutEffect, useMemo } from "react";
import { type PerspectiveCamera, Vector3 } from "three";
import { colorMapOf } from "./h5web_colors.js";

/** Numbers in rows, the first row first. */
export interface Relief {
  values: Float32Array;
  columns: number;
  rows: number;
}

export interface SurfaceLook {
  /** Heights from 0 to 1, which are the colours too; NaN: there is no surface. */
  relief: Relief;
  map: string;
  /** About the axis upwards, and above the ground, in degrees. */
  turn: [number, number];
  /** How many times as large as fits. */
  size: number;
  /** Colour of the edges of the ground. */
  color: string;
  label: string;
  onCanvas: (canvas: HTMLCanvasElement) => void;
  /** A picture is drawn: where the corners of the ground are, in pixels: of the first row, then of the last one, from the left. */
  onDrawn: (corners: [number, number][]) => void;
}

/** Height of the largest value, as a share of the longer side. */
const HEIGHT = 0.4;
/** Angle of the camera's view, in degrees. */
const VIEW = 30;
const RADIANS = Math.PI / 180;

export function SurfacePlot(look: SurfaceLook): ReactElement {
  const { relief, map } = look;
  const top = HEIGHT * (Math.max(relief.columns, relief.rows, 2) - 1);
  const heights = useMemo(() => heightsOf(relief, top), [relief, top]);
  return (
    <SurfaceVis dataArray={heights} domain={[0, top]} colorMap={colorMapOf(map, "#0000")}>
      <Scene {...look} />
    </SurfaceVis>
  );
}

/** Give heights to H5Web, which has the first row below. */
function heightsOf({ values, columns, rows }: Relief, top: number): NdArray<Float32Array> {
  const found = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) found[(rows - 1 - row) * columns + column] = top * (values[row * columns + column] ?? NaN);
  }
  return ndarray(found, [rows, columns]);
}

/** The edges of the ground, and the camera. H5Web has the first corner at (−columns / 2, −rows / 2). */
function Scene({ relief: { columns, rows }, turn: [azimuth, elevation], size, color, label, onCanvas, onDrawn }: SurfaceLook): ReactElement {
  const camera = useThree((state) => state.camera) as PerspectiveCamera;
  const renderer = useThree((state) => state.gl);
  const canvas = renderer.domElement;
  const scene = useThree((state) => state.scene);
  const invalidate = useThree((state) => state.invalidate);
  const corners = useMemo(() => {
    const [left, right, below, above] = [-columns / 2, columns / 2 - 1, -rows / 2, rows / 2 - 1];
    return [[left, above], [right, above], [left, below], [right, below]].map(([x, y]) => new Vector3(x, y, 0));
  }, [columns, rows]);
  const edges = useMemo(() => new Float32Array([0, 1, 3, 2].flatMap((at) => corners[at]?.toArray() ?? [])), [corners]);
  useLayoutEffect(() => {
    canvas.setAttribute("aria-label", label);
    onCanvas(canvas);
  }, [canvas, label, onCanvas]);
  useLayoutEffect(() => {
    renderer.sortObjects = false; // three asks for bounds, which are not known where heights are NaN
    scene.traverse((one) => (one.frustumCulled = false));
  }, [renderer, scene]);
  useLayoutEffect(() => {
    const longer = Math.max(columns, rows, 2) - 1;
    const [sin, cos] = [Math.sin(azimuth * RADIANS), Math.cos(azimuth * RADIANS)];
    const [up, out] = [Math.sin(elevation * RADIANS), Math.cos(elevation * RADIANS)];
    const middle = new Vector3(-0.5, -0.5, (HEIGHT / 3) * longer * out);
    const distance = (0.62 * longer) / Math.tan((VIEW / 2) * RADIANS) / size;
    camera.fov = VIEW;
    [camera.near, camera.far] = [distance / 100, distance + 3 * longer];
    camera.up.set(-sin * up, cos * up, out);
    camera.position.copy(middle).addScaledVector(new Vector3(sin * out, -cos * out, up), distance);
    camera.lookAt(middle);
    camera.updateProjectionMatrix();
    camera.updateMatrixWorld();
    invalidate();
  }, [camera, invalidate, columns, rows, azimuth, elevation, size]);
  useFrame((state) => onDrawn(corners.map((corner) => {
    const { x, y } = corner.clone().project(camera);
    return [((x + 1) / 2) * state.size.width, ((1 - y) / 2) * state.size.height];
  })));
  return (
    <lineLoop key={edges.join()}>
      <bufferGeometry>
        <bufferAttribute attach="attributes-position" args={[edges, 3]} />
      </bufferGeometry>
      <lineBasicMaterial color={color} />
    </lineLoop>
  );
}
