/** A page without a server of tessarr: nodes are described in files beside the page, and chunks are read from the store and decoded here. */

import { Api, ApiError, type ArrayNode, type ChunkMap, encodePath, type Finding, type Raw, type Slice, type ZarrNode } from "./api.js";
import { parsePicks, type Pick } from "./picks.js";

export interface Descriptions {
  /** Path of a node → what a server says about it, with all members and with findings. */
  nodes: Record<string, ZarrNode>;
  /** Path of an array of coordinates → its decoded elements. */
  coordinates: Record<string, Slice>;
}

export class StaticApi extends Api {
  override readonly isStatic = true;

  constructor(
    root: string,
    private readonly described: Descriptions,
  ) {
    super(root);
  }

  override node(path: string): Promise<ZarrNode> {
    const node = this.described.nodes[path];
    return node === undefined ? Promise.reject(new ApiError(404, "there is no node at this path", "")) : Promise.resolve(node);
  }

  override async check(path: string): Promise<Finding[] | null> {
    const below = path === "" ? "" : `${path}/`;
    return Object.values(this.described.nodes).filter((one) => one.path === path || one.path.startsWith(below)).flatMap((one) => one.findings ?? []);
  }

  override version(): Promise<string | null> {
    return Promise.resolve(null);
  }

  override async raw(path: string, query: string, signal?: AbortSignal): Promise<Raw> {
    const { readElements } = await import("./direct.js");
    const { node, picks, sample } = this.asked(path, query);
    return readElements(this.place(""), node, picks, sample, signal);
  }

  override async slice(path: string, query: string, signal?: AbortSignal): Promise<Slice> {
    const known = query === "" ? this.described.coordinates[path] : undefined;
    if (known !== undefined) return known;
    const { readValues } = await import("./direct.js");
    const { node, picks } = this.asked(path, query);
    return { data: await readValues(this.place(""), node, picks, signal), units: node.units, shape: [], coords: {} };
  }

  override chunks(path: string, query: string): Promise<ChunkMap> {
    const { node, picks } = this.asked(path, query);
    const edges = (lengths: number[]): number[][] => picks.map((pick, axis) => edgesOf(pick, lengths[axis] ?? 1, node.shape[axis] ?? 1));
    const chunks = node.grid.chunks ?? node.shape;
    return Promise.resolve({
      chunks: edges(chunks), values: edges(node.grid.shards ?? chunks), unit: node.grid.shards === null ? "chunk" : "shard", grid: node.nchunks, stored: null,
    });
  }

  private asked(path: string, query: string): { node: ArrayNode; picks: Pick[]; sample: number } {
    const node = this.described.nodes[path];
    if (node?.kind !== "array") throw new ApiError(404, "there is no array at this path", "");
    return { node, ...parsePicks(query, node.shape) };
  }
}

/** Return where chunks begin that a pick touches, and the end of the last. */
function edgesOf(pick: Pick, chunk: number, length: number): number[] {
  const [first, last] = [Math.floor(pick.start / chunk), Math.floor(Math.max(pick.start, pick.stop - 1) / chunk)];
  return [...Array.from({ length: last - first + 1 }, (_, at) => (first + at) * chunk), Math.min(length, (last + 1) * chunk)];
}

/** Read what a place says about itself, and make the requests for it. */
export async function apiOf(place: { root: string; nodes?: string }): Promise<Api> {
  if (place.nodes === undefined) return new Api(place.root);
  return new StaticApi(place.root, (await (await fetch(encodePath(place.nodes))).json()) as Descriptions);
}
