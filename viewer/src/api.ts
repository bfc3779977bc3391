/** Requests to the server of the page: descriptions of nodes, and elements of arrays. */

export interface Member {
  name: string;
  kind: "array" | "group";
  dtype?: string;
  shape?: number[];
  dimensions?: (string | null)[];
  problem?: string;
}

export interface Pyramid {
  name: string | null;
  paths: string[];
  axes: { name: string; type: string | null; unit: string | null }[];
  scales: (number[] | null)[];
  /** Path of the group of the pyramid, where an array names its own. */
  group?: string;
}

export interface Packing {
  scale: number;
  offset: number;
  missing: (number | string | null)[];
}

/** One result of `tessarr check`. */
export interface Finding {
  rule: string;
  severity: "error" | "warning" | "info";
  message: string;
  path: string;
  /** What `tessarr repair` would do. */
  repair: string | null;
}

interface Common {
  name: string;
  path: string;
  zarr_format?: number;
  documents: Record<string, string>;
  attributes?: Record<string, unknown>;
  problem?: string;
}

export interface GroupNode extends Common {
  kind: "group";
  findings?: Finding[] | null;
  members?: Member[];
  /** Name after which the next page of members begins; `null`: there are no more. */
  next?: string | null;
  pyramids?: Pyramid[];
}

export interface ArrayNode extends Common {
  kind: "array";
  findings?: Finding[] | null;
  shape: number[];
  dimensions: (string | null)[];
  dtype: string;
  numpy: string;
  itemsize: number;
  is_raw: boolean;
  /** Names of the fields of structs; `null` for elements without fields. */
  fields: string[] | null;
  grid: { chunks: number[] | null; shards: number[] | null };
  nchunks: number[];
  codecs: string[];
  stages: string[];
  fill_value: string | null;
  nbytes: number;
  engine: string;
  units: string | null;
  label: string | null;
  time: { units: string; calendar: string | null } | null;
  packing: Packing | null;
  coordinates: (string | null)[];
  pyramid?: Pyramid;
}

export type ZarrNode = GroupNode | ArrayNode;

export interface ChunkMap {
  chunks: number[][];
  values: number[][];
  unit: "chunk" | "shard";
  grid: number[];
  stored: string | null;
}

export interface Slice {
  data: unknown;
  units: string | null;
  shape: number[];
  coords: Record<string, unknown[]>;
}

export interface Raw {
  bytes: ArrayBuffer;
  shape: number[];
  dtype: string;
  isSample: boolean;
}

/** An answer that is not the content: what the server says about it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

/** Write the query of elements: an index or a slice for each axis, 0 where none is given. */
export function queryOf(node: ArrayNode, picks: Record<number, number | string>): string {
  return node.shape.map((_, axis) => `${axis}=${picks[axis] ?? 0}`).join("&");
}

/** Encode a path of a node, segment by segment. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

export class Api {
  /** Whether nothing is computed: there is no server of tessarr. */
  readonly isStatic: boolean = false;

  constructor(private readonly root: string) {}

  /** Return the whole URL of a node. */
  place(path: string): string {
    return new URL(path === "" ? this.root : `${this.root}/${encodePath(path)}`, location.href).href.replace(/\/$/, "");
  }

  /** Return the URL of computed content of an array. */
  url(path: string, suffix: string, query: string): string {
    const place = path === "" ? (this.root === ".." ? "../" : this.root) : `${this.root}/${encodePath(path)}`;
    return `${place}.${suffix}${query === "" ? "" : `?${query}`}`;
  }

  async node(path: string, after = ""): Promise<ZarrNode> {
    const query = after === "" ? "" : `&after=${encodeURIComponent(after)}`;
    return (await (await ask(this.description(path) + query)).json()) as ZarrNode;
  }

  /** Return the version of the description of a node, without its content. */
  async nodeVersion(path: string): Promise<string | null> {
    return await this.version(this.description(path));
  }

  /** Check the documents of a node and of all below it; `null`: there are too many. */
  async check(path: string): Promise<Finding[] | null> {
    return ((await (await ask(`${this.description(path)}&check`)).json()) as ZarrNode).findings ?? null;
  }

  private description(path: string): string {
    return `${path === "" ? `${this.root}/` : `${this.root}/${encodePath(path)}/`}?json`;
  }

  /** Return the version of the answer for a URL. */
  async version(url: string): Promise<string | null> {
    return (await ask(url, undefined, "HEAD")).headers.get("ETag");
  }

  async raw(path: string, query: string, signal?: AbortSignal): Promise<Raw> {
    const answer = await ask(this.url(path, "raw", query), signal);
    const shape = answer.headers.get("X-Shape") ?? "";
    return {
      bytes: await answer.arrayBuffer(),
      shape: shape === "" ? [] : shape.split(",").map(Number),
      dtype: answer.headers.get("X-Dtype") ?? "",
      isSample: answer.headers.has("X-Sample"),
    };
  }

  async slice(path: string, query: string, signal?: AbortSignal): Promise<Slice> {
    return (await (await ask(this.url(path, "json", query), signal)).json()) as Slice;
  }

  async chunks(path: string, query: string): Promise<ChunkMap> {
    return (await (await ask(this.url(path, "chunks", query))).json()) as ChunkMap;
  }
}

async function ask(url: string, signal?: AbortSignal, method = "GET"): Promise<Response> {
  const answer = await fetch(url, signal === undefined ? { method } : { method, signal }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    throw new ApiError(0, "the server does not answer", "Is `tessarr view` still running?");
  });
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text.trim() || `the server answered ${answer.status}`;
  let hint = "";
  try {
    const error = (JSON.parse(text) as { error: { message: string; hint?: string } }).error;
    message = error.message;
    hint = error.hint ?? "";
  } catch {
    // not an error in JSON: its text is the message
  }
  throw new ApiError(answer.status, message, hint);
}
