// Reads an array per line of standard input ({files: {path: base64}, v2}), and writes a line of values or an error.
import { createInterface } from "node:readline";
import * as zarr from "zarrita";

class Files {
  constructor(files) {
    this.files = new Map(Object.entries(files).map(([path, text]) => ["/" + path, new Uint8Array(Buffer.from(text, "base64"))]));
  }

  async get(key) {
    return this.files.get(key);
  }

  async getRange(key, range) {
    const value = this.files.get(key);
    const begin = range.suffixLength === undefined ? range.offset : Math.max(0, (value?.length ?? 0) - range.suffixLength);
    return value?.slice(begin, range.suffixLength === undefined ? range.offset + range.length : undefined);
  }
}

// zarrita looks codecs up before it waits for them, so that an unknown one is a rejection of nobody's promise.
process.on("unhandledRejection", () => {});

async function read({ files, v2 }) {
  const store = new Files(files);
  const open = v2 ? zarr.open.v2 : zarr.open.v3;
  const array = await open(zarr.root(store), { kind: "array" });
  const found = await zarr.get(array, null);
  if (array.shape.length === 0) {
    return { dtype: array.dtype, shape: [], scalar: String(found) };
  }
  let { data, shape, stride } = found;
  if (!ArrayBuffer.isView(data)) {
    data = data.buffer && data.BYTES_PER_ELEMENT ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : Uint8Array.from(data);
  }
  return { dtype: array.dtype, shape, stride, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = await read(JSON.parse(line));
  } catch (error) {
    answer = { error: `${error?.name}: ${error?.message}` };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
