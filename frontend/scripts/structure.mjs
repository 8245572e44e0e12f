// Checks that imports follow the layers without cycles, and that all user-facing texts are in src/texts.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("../src/", import.meta.url));
const sources = new Map(
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.|\.d\.ts$/.test(name))
    .sort()
    .map((name) => [name, parse(name)]),
);

/** A folder may import from itself and from folders after it. */
const LAYERS = ["app", "pages", "ui", "api", "texts", "lib"];

/** Attributes whose values users see or hear. */
const USER_FACING = /^(alt|aria-label|description|empty|gaps|hint|label|note|placeholder|title|unit|word)$/;
/** Attributes, properties and functions whose strings users never see. */
const INTERNAL = /^(className|d|data-.*|fill|href|key|keys|path|queryKey|rel|src|textAnchor|type|viewBox)$/;
const CALLS =
  /(querySelector(All)?|matches|closest|matchMedia|replace|startsWith|get|setKey|GET|POST|DELETE|Error)$/;
/** Two words, a capitalized word, or the end of a sentence. */
const TEXT =
  /[A-Za-z]{2,}[,.:;]? [A-Za-z]{2,}|^[A-Z][a-z]+$|[a-z]{2,}[.…?]$|\d [a-z]{2,}( |$)|[a-z]{3,}:? \d/;
/** API values, query keys, and names of keyboard keys and errors. */
const VALUES = new Set(
  (
    "stopped itself,open count,new count,queue names," +
    "Idempotency-Key,AbortError,Failure,ArrowDown,ArrowUp,ArrowLeft,ArrowRight,PageUp,PageDown,Home,End,Enter," +
    "Escape,Backspace"
  ).split(","),
);

const problems = [
  ...findCycles(),
  ...findWrongImports(),
  ...[...sources].flatMap(([name, file]) => texts(name, file)),
];
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`${sources.size} files without import cycles, all texts in src/texts`);

function parse(name) {
  return ts.createSourceFile(name, readFileSync(root + name, "utf8"), ts.ScriptTarget.Latest, true);
}

/** All imports of a file: static, dynamic, and type-only. */
function importsOf(name) {
  const found = [];
  const look = (node) => {
    const isImport = ts.isImportDeclaration(node) || ts.isExportDeclaration(node);
    const isDynamic = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
    const from = isImport ? node.moduleSpecifier : isDynamic ? node.arguments[0] : undefined;
    if (from) found.push(resolve(name, from.text));
    ts.forEachChild(node, look);
  };
  look(sources.get(name));
  return found.filter((target) => target !== undefined);
}

function resolve(name, from) {
  if (!/^[.~]/.test(from)) return undefined;
  const path = from.startsWith("~/") ? from.slice(2) : normalize(join(dirname(name), from));
  return [".ts", ".tsx", "/index.ts", "/index.tsx"]
    .map((end) => path + end)
    .find((candidate) => sources.has(candidate));
}

/** Finds import cycles with Tarjan's algorithm for strongly connected components. */
function findCycles() {
  const index = new Map();
  const low = new Map();
  const stack = [];
  const found = [];
  function visit(name) {
    index.set(name, index.size);
    low.set(name, index.get(name));
    stack.push(name);
    for (const target of importsOf(name)) {
      if (!index.has(target)) visit(target);
      if (stack.includes(target)) low.set(name, Math.min(low.get(name), low.get(target)));
    }
    if (low.get(name) !== index.get(name)) return;
    const members = stack.splice(stack.indexOf(name));
    if (members.length > 1) found.push(`import cycle: ${members.join(", ")}`);
  }
  for (const name of sources.keys()) if (!index.has(name)) visit(name);
  return found;
}

function findWrongImports() {
  const layer = (name) => LAYERS.indexOf(name.split("/")[0]);
  return [...sources.keys()].flatMap((name) =>
    importsOf(name)
      .filter((target) => layer(name) >= 0 && (layer(target) < layer(name) || layer(target) < 0))
      .map((target) => `${name} imports ${target}: imports point along ${LAYERS.join(" → ")}`),
  );
}

function texts(name, source) {
  if (/^(texts|lib|testing)\/|commands\.ts$/.test(name)) return [];
  const found = [];
  function look(node) {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    const text = textOf(node);
    if (text !== undefined) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      found.push(`src/${name}:${line + 1} contains a text that belongs in src/texts: ${text.trim()}`);
    }
    ts.forEachChild(node, look);
  }
  look(source);
  return found;
}

function textOf(node) {
  if (ts.isJsxText(node)) return /[A-Za-z]/.test(node.text) ? node.text : undefined;
  if (ts.isStringLiteralLike(node)) return isText(node, node.text) ? node.text : undefined;
  if (!ts.isTemplateExpression(node)) return undefined;
  const text = [node.head, ...node.templateSpans.map(({ literal }) => literal)]
    .map((part) => part.text)
    .join("{}");
  return isText(node, text.replaceAll("{}", "1")) ? text : undefined;
}

function isText(node, text) {
  if (VALUES.has(text) || !/[A-Za-z]/.test(text) || /^\([a-z-]+: \w+\)$/.test(text)) return false;
  const { parent } = node;
  const attribute = ts.isJsxExpression(parent) ? parent.parent : parent;
  if (ts.isJsxAttribute(attribute)) {
    const name = attribute.name.getText();
    return !INTERNAL.test(name) && (TEXT.test(text) || (USER_FACING.test(name) && attribute === parent));
  }
  if (ts.isPropertyAssignment(parent)) {
    return parent.initializer === node && !INTERNAL.test(parent.name.getText()) && TEXT.test(text);
  }
  if (ts.isCallExpression(parent) && parent.expression.getText() === "plural") return true;
  if (ts.isCallExpression(parent) && CALLS.test(parent.expression.getText())) return false;
  if (ts.isNewExpression(parent)) return false;
  return TEXT.test(text);
}
