// Writes src/api/schema.d.ts from the service's OpenAPI document; with --check, fails when that would change it.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../tests/admin/openapi.json", import.meta.url);
const target = new URL("../src/api/schema.d.ts", import.meta.url);
const mounted = "/outbox";

/** The admin's part of the document alone, with addresses relative to wherever it is mounted. */
function ofTheAdmin(document) {
  const paths = Object.entries(document.paths)
    .filter(([path]) => path.startsWith(`${mounted}/`))
    .map(([path, operations]) => [path.slice(mounted.length), operations]);
  return { ...document, paths: Object.fromEntries(paths) };
}

// Examples are for readers of the document; types would only repeat them in comments.
const withoutExamples = (key, value) => (key === "example" || key === "examples" ? undefined : value);
const document = ofTheAdmin(JSON.parse(await readFile(source, "utf8"), withoutExamples));
const heading = "// Written by `npm run client` from the service's OpenAPI document; not to be edited.\n\n";
const wanted = heading + astToString(await openapiTS(document));

if (process.argv.includes("--check")) {
  const present = await readFile(target, "utf8").catch(() => "");
  if (present !== wanted) {
    console.error(
      "frontend/src/api/schema.d.ts does not fit the OpenAPI document: run `npm run client` in frontend/",
    );
    process.exit(1);
  }
} else {
  await writeFile(target, wanted);
}
