// Read a whole array by zarrita, several times; print the seconds of the quickest: node whole_array.mjs URL TIMES
import * as zarr from "zarrita";

const [url, times] = [process.argv[2], Number(process.argv[3])];
let best = Infinity;
for (let turn = 0; turn < times; turn++) {
  const began = performance.now();
  const array = await zarr.open.v3(new zarr.FetchStore(url), { kind: "array" });
  const read = await zarr.get(array);
  if (read.data[read.data.length - 1] !== read.data.length - 1) throw new Error("wrong values");
  best = Math.min(best, (performance.now() - began) / 1000);
}
console.log(best);
