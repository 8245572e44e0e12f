// Checks the gzipped size of the first load: the scripts of the page, the overview and its charts.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const limit = 170_000;
const folder = new URL("../../outbox/admin/ui/static/", import.meta.url);
const chunks = JSON.parse(await readFile(new URL(".vite/manifest.json", folder), "utf8"));

/** Chunks with their static imports, in loading order. */
function withImports(names, found = new Set()) {
  for (const name of names) {
    if (found.has(name)) continue;
    found.add(name);
    withImports(chunks[name].imports ?? [], found);
  }
  return found;
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const gzippedSize = async (file) => gzipSync(await readFile(new URL(file, folder))).length;

const [overview] = Object.keys(chunks).filter((name) => name.endsWith("/Overview.tsx"));
const [charts] = Object.keys(chunks).filter((name) => name.endsWith("/Plot.tsx"));
const [entry] = Object.keys(chunks).filter((name) => chunks[name].isEntry);
if (!entry || !overview || !charts) {
  console.error("the build's manifest lacks an entry, the overview or the charts: adapt scripts/budget.mjs");
  process.exit(1);
}
const first = withImports([entry, overview, charts]);
const files = ["theme.js", ...[...first].map((name) => chunks[name].file)];
const sizes = await Promise.all(files.map(gzippedSize));
const total = sizes.reduce((sum, size) => sum + size, 0);
const summary = `${kilobytes(total)} of at most ${kilobytes(limit)} of gzipped JavaScript`;
if (total > limit) {
  const listed = files.map((file, index) => `  ${kilobytes(sizes[index]).padStart(9)}  ${file}`).join("\n");
  console.error(`${summary}: load code that is not needed at once with import()\n${listed}`);
  process.exit(1);
}
const later = (chunks[overview].dynamicImports ?? []).filter((name) => !first.has(name));
const parts = later.map(
  async (name) => `${chunks[name].name} ${kilobytes(await gzippedSize(chunks[name].file))}`,
);
console.log(
  `${summary}${later.length ? `; the overview loads later ${(await Promise.all(parts)).join(", ")}` : ""}`,
);
