// Read whole arrays by zarrita: for each line of the input, a URL, print "read", or what is wrong: node whole_array.mjs
import { createInterface } from "node:readline";
import * as zarr from "zarrita";

for await (const url of createInterface({ input: process.stdin })) {
  try {
    const array = await zarr.open.v3(new zarr.FetchStore(url), { kind: "array" });
    const read = await zarr.get(array);
    const last = read.data.length - 1;
    console.log(read.data[last] === last ? "read" : "wrong values");
  } catch (error) {
    console.log(String(error).split("\n")[0]);
  }
}
