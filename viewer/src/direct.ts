/** Read elements of a store over HTTP and decode them in the browser, by zarrita. Loaded only for pages without a server of tessarr. */

import * as zarr from "zarrita";
import { ApiError, type ArrayNode, encodePath, type Raw } from "./api.js";
import { type Pick, positionsOf, reduce } from "./picks.js";

type Array_ = zarr.Array<zarr.DataType>;
type Chunk = Awaited<ReturnType<Array_["getChunk"]>>;
type Values = ArrayLike<unknown> & { get?: (index: number) => unknown };

const MAX_CHUNKS = 4096;
const AT_ONCE = 8;
/** Bytes of decoded chunks that are kept. */
const KEPT_NBYTES = 2 ** 27;

/** Values of a store behind a URL. Buckets that do not let clients list answer 403 for a key without value. */
class UrlStore {
  constructor(private readonly root: string) {}

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.ask(key, {});
  }

  async getRange(key: string, range: { offset: number; length: number } | { suffixLength: number }): Promise<Uint8Array | undefined> {
    const text = "suffixLength" in range ? `-${range.suffixLength}` : `${range.offset}-${range.offset + range.length - 1}`;
    return this.ask(key, { Range: `bytes=${text}` });
  }

  private async ask(key: string, headers: Record<string, string>): Promise<Uint8Array | undefined> {
    const answer = await fetch(`${this.root}/${encodePath(key.replace(/^\//, ""))}`, { headers }).catch(() => {
      throw new ApiError(0, "the store does not answer, or does not let pages of other origins read it (CORS)", "");
    });
    if (answer.status === 404 || answer.status === 403) return undefined;
    if (!answer.ok) throw new ApiError(answer.status, `the store answered ${answer.status}`, "");
    if (headers["Range"] !== undefined && answer.status !== 206) throw new ApiError(answer.status, "the store sends no parts of values, so that shards cannot be read", "");
    return new Uint8Array(await answer.arrayBuffer());
  }
}

const arrays = new Map<string, Promise<Array_>>();
const chunks = new Map<string, Promise<Chunk>>();

function open(root: string, node: ArrayNode): Promise<Array_> {
  const place = `${root}/${node.path}`;
  const known = arrays.get(place);
  if (known !== undefined) return known;
  const location = zarr.root(new UrlStore(root)).resolve(node.path);
  const opened = (node.zarr_format === 2 ? zarr.open.v2(location, { kind: "array", attrs: false }) : zarr.open.v3(location, { kind: "array" })) as Promise<Array_>;
  const explained = opened.catch((error: unknown) => {
    arrays.delete(place);
    if (error instanceof ApiError) throw error;
    throw new ApiError(0, `without a server of tessarr, this page reads neither all data types nor all codecs: this array has ${node.dtype}, by ${node.stages.join(", ")}`, "`tessarr view` shows it.");
  });
  arrays.set(place, explained);
  return explained;
}

function chunkOf(array: Array_, node: ArrayNode, root: string, coords: number[]): Promise<Chunk> {
  const key = `${root}${array.path}/${coords.join("/")}`;
  const known = chunks.get(key);
  if (known !== undefined) return known;
  const read = array.getChunk(coords).catch((error: unknown) => {
    chunks.delete(key);
    if (error instanceof ApiError) throw error;
    throw new ApiError(0, `chunk ${coords.join(", ")} cannot be decoded: ${error instanceof Error ? error.message : String(error)}`, "");
  });
  chunks.set(key, read);
  const most = Math.max(2 * AT_ONCE, KEPT_NBYTES / (node.itemsize * array.chunks.reduce((all, length) => all * length, 1)));
  for (const oldest of chunks.keys()) {
    if (chunks.size <= most) break;
    chunks.delete(oldest);
  }
  return read;
}

/** Read elements into `put`, which takes the position in the result and the element. */
async function read(
  root: string, node: ArrayNode, picks: Pick[], sample: number, signal: AbortSignal | undefined, put: (to: number, values: Values, at: number) => void,
): Promise<{ shape: number[]; isSample: boolean }> {
  if (node.grid.chunks === null) throw new ApiError(0, "a browser cannot read chunks of different sizes without a server", "");
  const array = await open(root, node);
  const lengths = node.grid.chunks;
  const { positions, isSample } = reduce(picks.map(positionsOf), lengths, Math.min(sample, MAX_CHUNKS));
  const parts = positions.map((one, axis) => partsOf(one, lengths[axis] ?? 1));
  let combinations: { coords: number[]; members: Member[][] }[] = [{ coords: [], members: [] }];
  for (const axis of parts) combinations = combinations.flatMap((one) => axis.map((part) => ({ coords: [...one.coords, part.chunk], members: [...one.members, part.members] })));
  const sizes = positions.map((one) => one.length);
  for (let first = 0; first < combinations.length; first += AT_ONCE) {
    signal?.throwIfAborted();
    await Promise.all(combinations.slice(first, first + AT_ONCE).map(async ({ coords, members }) => copy(await chunkOf(array, node, root, coords), members, sizes, put)));
  }
  return { shape: sizes.filter((_, axis) => picks[axis]?.isIndex === false), isSample };
}

/** A position within a chunk, and its place in the result. */
interface Member {
  inside: number;
  to: number;
}

function partsOf(positions: number[], chunk: number): { chunk: number; members: Member[] }[] {
  const found = new Map<number, Member[]>();
  positions.forEach((position, to) => {
    const at = Math.floor(position / chunk);
    const members = found.get(at) ?? [];
    members.push({ inside: position - at * chunk, to });
    found.set(at, members);
  });
  return [...found].map(([at, members]) => ({ chunk: at, members }));
}

function copy(chunk: Chunk, members: Member[][], sizes: number[], put: (to: number, values: Values, at: number) => void): void {
  const values = chunk.data as unknown as Values;
  const visit = (axis: number, at: number, to: number): void => {
    const own = members[axis];
    if (own === undefined) {
      put(to, values, at);
      return;
    }
    for (const one of own) visit(axis + 1, at + one.inside * (chunk.stride[axis] ?? 1), to * (sizes[axis] ?? 1) + one.to);
  };
  visit(0, 0, 0);
}

/** Read elements as little-endian bytes. */
export async function readElements(root: string, node: ArrayNode, picks: Pick[], sample: number, signal?: AbortSignal): Promise<Raw> {
  const count = picks.reduce((all, pick) => all * positionsOf(pick).length, 1);
  const bytes = new Uint8Array(count * node.itemsize);
  const found = await read(root, node, picks, sample, signal, (to, values, at) => {
    const { buffer, byteOffset, BYTES_PER_ELEMENT } = values as unknown as Uint8Array;
    if (BYTES_PER_ELEMENT === node.itemsize) bytes.set(new Uint8Array(buffer, byteOffset + at * node.itemsize, node.itemsize), to * node.itemsize);
    else bytes[to] = Number(valueAt(values, at)); // Booleans
  });
  return { bytes: bytes.buffer, shape: found.shape, dtype: node.numpy, isSample: found.isSample };
}

/** Read elements as nested lists. */
export async function readValues(root: string, node: ArrayNode, picks: Pick[], signal?: AbortSignal): Promise<unknown> {
  const flat: unknown[] = [];
  const { shape } = await read(root, node, picks, Infinity, signal, (to, values, at) => {
    const value = valueAt(values, at);
    flat[to] = typeof value === "bigint" ? String(value) : value;
  });
  let nested = flat;
  for (const length of shape.slice(1).reverse()) nested = Array.from({ length: nested.length / Math.max(1, length) }, (_, at) => nested.slice(at * length, (at + 1) * length));
  return shape.length === 0 ? nested[0] : nested;
}

function valueAt(values: Values, at: number): unknown {
  return typeof values.get === "function" ? values.get(at) : values[at];
}
