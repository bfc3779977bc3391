// Builds viewer.js into src/tessarr/viewer, beside the HTML and CSS of the page, with a manifest of the sources that it was built
// from; `--tests`: the unit tests into build/.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "tessarr", "viewer");

if (process.argv.includes("--tests")) {
  const names = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => join(here, "test", name)), outdir: join(here, "build"), bundle: true, platform: "node",
    format: "esm", outExtension: { ".js": ".mjs" }, logLevel: "warning",
  });
} else {
  await build({
    entryPoints: [join(here, "src", "main.ts")], outfile: join(target, "viewer.js"), bundle: true, minify: true, format: "esm",
    target: "es2022", charset: "utf8", legalComments: "eof", logLevel: "warning",
  });
  const sources = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs"];
  for (const name of await readdir(join(here, "src"))) sources.push(`src/${name}`);
  const digest = async (path) => createHash("sha256").update(await readFile(path)).digest("hex");
  const manifest = { sources: {}, files: {} };
  for (const name of sources.sort()) manifest.sources[name] = await digest(join(here, name));
  manifest.files["viewer.js"] = await digest(join(target, "viewer.js"));
  await writeFile(join(target, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}
