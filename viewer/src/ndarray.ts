/**
 * The arrays that H5Web's parts take, in place of the package ndarray, which makes its classes from text: the page's policy forbids `eval`. H5Web
 * names ndarray-ops, and uses nothing of it.
 */

type Numbers = Float32Array | Float64Array | Uint8Array | Uint8ClampedArray | number[];

/** Give numbers a shape: the last index varies fastest. */
export default function ndarray(data: Numbers, shape: number[] = [data.length]): object {
  const kind = data instanceof Uint8ClampedArray ? "uint8_clamped" : data.constructor.name.replace(/Array$/, "").toLowerCase();
  const get = (...at: number[]): number | undefined => data[at.reduce((position, index, axis) => position * (shape[axis] ?? 1) + index, 0)];
  return { data, shape, size: data.length, dtype: kind, get };
}
