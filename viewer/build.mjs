// Builds the scripts of the page into src/tessarr/viewer, beside its HTML and CSS: viewer.js, the style of H5Web, coast lines, the licences
// of what is bundled, and a manifest of the sources that they were built from. `--tests`: the unit tests into build/.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFile, readdir, readFile, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "tessarr", "viewer");
const packages = join(here, "node_modules");
/** Packages of which something is in the built files, but not in the scripts. */
const DATA = ["world-atlas"];
/** Licences of packages that hold none, in licenses/. */
const MISSING = { "@react-three/fiber": "react-three-fiber.txt" };
/** Modules that take the place of one of a package. */
const INSTEAD = { "numcodecs/zstd": "zstd.ts", three: "three.ts", ndarray: "ndarray.ts", "ndarray-ops": "ndarray.ts" };

/** Convert the borders of land (TopoJSON) to lines in tenths of a degree: the first point, then the steps to the next. */
function coastLines({ arcs, transform: { scale, translate } }) {
  const lines = [];
  for (const arc of arcs) {
    let [x, y, line, last] = [0, 0, [], [0, 0]];
    const close = () => {
      if (line.length > 2) lines.push(line);
      [line, last] = [[], [0, 0]];
    };
    for (const [dx, dy] of arc) {
      [x, y] = [x + dx, y + dy];
      const point = [Math.round(10 * (x * scale[0] + translate[0])), Math.round(10 * (y * scale[1] + translate[1]))];
      if (Math.abs(point[0]) >= 1799 || point[1] <= -899) close(); // the edges of the map are no coast
      else if (line.length === 0 || point[0] !== last[0] || point[1] !== last[1]) {
        line.push(point[0] - last[0], point[1] - last[1]);
        last = point;
      }
    }
    close();
  }
  return lines;
}

/** Return the name of the package that a module is in; `undefined`: it is in none. */
function packageOf(path) {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
}

/** List the packages that the built scripts have parts of. */
function bundled({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const found = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => packageOf(path));
  return [...new Set([...found.filter((name) => name !== undefined), ...DATA])].sort();
}

async function licenses(names) {
  const texts = names.map(async (name) => {
    const { version, license } = JSON.parse(await readFile(join(packages, name, "package.json"), "utf8"));
    const own = (await readdir(join(packages, name))).find((one) => /^licen[cs]e/i.test(one));
    if (own === undefined && !(name in MISSING)) throw new Error(`${name} has no file of its licence`);
    const file = own === undefined ? join(here, "licenses", MISSING[name]) : join(packages, name, own);
    return `${name} ${version} (${license})\n\n${(await readFile(file, "utf8")).trim()}\n`;
  });
  const compiled = await readFile(join(here, "compiled_licenses.txt"), "utf8");
  return `The page of tessarr contains parts of these packages.\n\n${[...(await Promise.all(texts)), compiled].join("\n\n")}`;
}

/** Let esbuild resolve the names in INSTEAD to modules of the page, but for imports by these modules. */
const instead = {
  name: "instead",
  setup({ onResolve }) {
    onResolve({ filter: new RegExp(`^(${Object.keys(INSTEAD).join("|")})$`) }, ({ path, importer }) =>
      importer === join(here, "src", INSTEAD[path]) ? undefined : { path: join(here, "src", INSTEAD[path]) });
  },
};

async function buildTests() {
  const names = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => join(here, "test", name)), outdir: join(here, "build"), bundle: true, platform: "node",
    format: "esm", outExtension: { ".js": ".mjs" }, logLevel: "warning",
  });
}

async function buildPage() {
  for (const name of await readdir(target)) if (/^part-.*\.js$/.test(name)) await unlink(join(target, name));
  const { metafile } = await build({
    entryPoints: { viewer: join(here, "src", "main.ts") }, outdir: target, bundle: true, splitting: true, chunkNames: "part-[hash]",
    minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning",
    preserveSymlinks: true, // names of parts follow from the paths below this folder alone
    jsx: "automatic", define: { "process.env.NODE_ENV": '"production"' }, plugins: [instead], metafile: true,
  });
  const names = bundled(metafile);
  const land = JSON.parse(await readFile(join(packages, "world-atlas", "land-110m.json"), "utf8"));
  await writeFile(join(target, "coast.json"), `${JSON.stringify(coastLines(land))}\n`);
  await copyFile(join(packages, "@h5web", "lib", "dist", "styles.css"), join(target, "h5web.css"));
  await writeFile(join(target, "licenses.txt"), await licenses(names));
  const sources = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", "compiled_licenses.txt", ...Object.values(MISSING).map((name) => `licenses/${name}`)];
  for (const name of await readdir(join(here, "src"))) sources.push(`src/${name}`);
  const digest = async (path) => createHash("sha256").update(await readFile(path)).digest("hex");
  const manifest = { packages: names, sources: {}, files: {} };
  for (const name of sources.sort()) manifest.sources[name] = await digest(join(here, name));
  const built = (await readdir(target)).filter((name) => name.endsWith(".js"));
  for (const name of ["coast.json", "h5web.css", "licenses.txt", ...built].sort()) manifest.files[name] = await digest(join(target, name));
  await writeFile(join(target, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

await (process.argv.includes("--tests") ? buildTests() : buildPage());
