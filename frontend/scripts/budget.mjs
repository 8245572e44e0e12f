// Weighs what the first load fetches before anything can be read: all scripts of the page and of its overview, gzipped.
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

const entries = Object.keys(chunks).filter((name) => chunks[name].isEntry || /\/Overview\.tsx$/.test(name));
const files = ["theme.js", ...[...loaded(entries)].map((name) => chunks[name].file)];
const sizes = await Promise.all(
  files.map(async (file) => gzipSync(await readFile(new URL(file, folder))).length),
);
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const total = sizes.reduce((sum, size) => sum + size, 0);
const told = `${kilobytes(total)} of at most ${kilobytes(most)} of gzipped JavaScript`;
if (entries.length < 2) {
  console.error("the build's manifest names no entry or no overview: scripts/budget.mjs has to be adapted");
  process.exit(1);
}
if (total > most) {
  const listed = files.map((file, place) => `  ${kilobytes(sizes[place]).padStart(9)}  ${file}`).join("\n");
  console.error(`${told}: load what is not needed at once with import()\n${listed}`);
  process.exit(1);
}
console.log(told);
