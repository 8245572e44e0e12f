// Generates src/api/schema.d.ts from the service's OpenAPI document; with --check, fails if the file is out of date.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../tests/admin/openapi.json", import.meta.url);
const target = new URL("../src/api/schema.d.ts", import.meta.url);
const mountPath = "/outbox";

/** Keeps only the admin's paths, relative to its mount point. */
function adminPaths(document) {
  const paths = Object.entries(document.paths)
    .filter(([path]) => path.startsWith(`${mountPath}/`))
    .map(([path, operations]) => [path.slice(mountPath.length), operations]);
  return { ...document, paths: Object.fromEntries(paths) };
}

// Examples would only become comments of the types.
const withoutExamples = (key, value) => (key === "example" || key === "examples" ? undefined : value);
const document = adminPaths(JSON.parse(await readFile(source, "utf8"), withoutExamples));
const heading = "// Written by `npm run client` from the service's OpenAPI document; not to be edited.\n\n";
const wanted = heading + astToString(await openapiTS(document));

if (process.argv.includes("--check")) {
  const present = await readFile(target, "utf8").catch(() => "");
  if (present !== wanted) {
    console.error(
      "frontend/src/api/schema.d.ts is out of date with the OpenAPI document: run `npm run client` in frontend/",
    );
    process.exit(1);
  }
} else {
  await writeFile(target, wanted);
}
