// Weighs what the first load fetches, gzipped: the scripts of the page, of its overview and of the charts there.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const most = 170_000;
const folder = new URL("../../outbox/admin/ui/static/", import.meta.url);
const chunks = JSON.parse(await readFile(new URL(".vite/manifest.json", folder), "utf8"));

/** The chunks and all that they import when they are loaded, in that order. */
function loaded(names, found = new Set()) {
  for (const name of names) {
    if (found.has(name)) continue;
    found.add(name);
    loaded(chunks[name].imports ?? [], found);
  }
  return found;
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const weigh = async (file) => gzipSync(await readFile(new URL(file, folder))).length;

const [overview] = Object.keys(chunks).filter((name) => name.endsWith("/Overview.tsx"));
const [charts] = Object.keys(chunks).filter((name) => name.endsWith("/Plot.tsx"));
const [entry] = Object.keys(chunks).filter((name) => chunks[name].isEntry);
if (!entry || !overview || !charts) {
  console.error("the build's manifest names no entry, no overview or no charts: adapt scripts/budget.mjs");
  process.exit(1);
}
const first = loaded([entry, overview, charts]);
const files = ["theme.js", ...[...first].map((name) => chunks[name].file)];
const sizes = await Promise.all(files.map(weigh));
const total = sizes.reduce((sum, size) => sum + size, 0);
const told = `${kilobytes(total)} of at most ${kilobytes(most)} of gzipped JavaScript`;
if (total > most) {
  const listed = files.map((file, place) => `  ${kilobytes(sizes[place]).padStart(9)}  ${file}`).join("\n");
  console.error(`${told}: load with import() what is not needed at once\n${listed}`);
  process.exit(1);
}
const later = (chunks[overview].dynamicImports ?? []).filter((name) => !first.has(name));
const parts = later.map(async (name) => `${chunks[name].name} ${kilobytes(await weigh(chunks[name].file))}`);
console.log(
  `${told}${later.length ? `; the overview loads later ${(await Promise.all(parts)).join(", ")}` : ""}`,
);
