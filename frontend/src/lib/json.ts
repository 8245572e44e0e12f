// Lossless JSON: numbers keep their source text, members keep their order, and duplicate keys are preserved.

export type JsonNode =
  | { kind: "object"; members: readonly Member[] }
  | { kind: "array"; items: readonly JsonNode[] }
  | { kind: "string"; value: string }
  | { kind: "number"; source: string }
  | { kind: "literal"; source: "true" | "false" | "null" };

export interface Member {
  key: string;
  node: JsonNode;
}

/** Kinds of syntax errors; texts/editing.ts has their messages. */
export type JsonFault =
  | "bad_escape"
  | "no_bracket"
  | "no_brace"
  | "no_colon"
  | "no_end"
  | "no_string"
  | "no_value"
  | "trailing_text"
  | "unclosed_string";

export class JsonError extends SyntaxError {
  constructor(
    readonly fault: JsonFault,
    /** Offset in the text. */
    readonly at: number,
  ) {
    super(`${fault} at character ${at + 1}`);
    this.name = "JsonError";
  }
}

/** Parses a JSON document; throws a `JsonError` if it is invalid. Not recursive, so nesting depth is unlimited. */
export function readJson(text: string): JsonNode {
  // An editor reads the same text several times per key press, so the last result is cached.
  if (last?.text !== text) last = { text, result: read(text) };
  if (last.result instanceof JsonError) throw last.result;
  return last.result;
}

let last: { text: string; result: JsonNode | JsonError } | undefined;

function read(text: string): JsonNode | JsonError {
  try {
    return new Reader(text).document();
  } catch (thrown) {
    if (thrown instanceof JsonError) return thrown;
    throw thrown;
  }
}

/** Parses a JSON document; returns undefined if it is invalid. */
export function tryReadJson(text: string): JsonNode | undefined {
  try {
    return readJson(text);
  } catch (thrown) {
    if (thrown instanceof JsonError) return undefined;
    throw thrown;
  }
}

/** Value of a key. Of duplicate keys the last wins, as in most JSON parsers. */
export function memberOf(node: JsonNode, key: string): JsonNode | undefined {
  return node.kind === "object" ? node.members.findLast((member) => member.key === key)?.node : undefined;
}

/** Serializes a document on one line, or indented on several. Numbers keep their source text. */
export function writeJson(node: JsonNode, indent = 0): string {
  const parts: string[] = [];
  write(node, indent, indent > 0 ? "\n" : "", parts);
  return parts.join("");
}

function write(node: JsonNode, indent: number, line: string, parts: string[]): void {
  const inner = line && line + " ".repeat(indent);
  if (node.kind === "object") {
    const members = node.members.map(
      ({ key, node: value }) => [`${JSON.stringify(key)}:${line ? " " : ""}`, value] as const,
    );
    writeItems("{}", members, indent, line, inner, parts);
  } else if (node.kind === "array") {
    writeItems(
      "[]",
      node.items.map((item) => ["", item] as const),
      indent,
      line,
      inner,
      parts,
    );
  } else {
    parts.push(node.kind === "string" ? JSON.stringify(node.value) : node.source);
  }
}

function writeItems(
  brackets: string,
  values: readonly (readonly [string, JsonNode])[],
  indent: number,
  line: string,
  inner: string,
  parts: string[],
): void {
  parts.push(brackets.charAt(0));
  values.forEach(([before, value], index) => {
    parts.push(index > 0 ? "," : "", inner, before);
    write(value, indent, inner, parts);
  });
  parts.push(values.length > 0 ? line : "", brackets.charAt(1));
}

export interface Position {
  line: number;
  column: number;
}

/** Line and column of an offset in a text, both from 1. */
export function positionOf(text: string, at: number): Position {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, column: at - before.lastIndexOf("\n") };
}

export interface JsonProblem extends Position {
  fault: JsonFault;
}

/** Syntax error of a text with its position; undefined if it is valid JSON. */
export function findJsonProblem(text: string): JsonProblem | undefined {
  try {
    readJson(text);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    return { fault: thrown.fault, ...positionOf(text, thrown.at) };
  }
}

interface OpenContainer {
  node: { kind: "object"; members: Member[] } | { kind: "array"; items: JsonNode[] };
  /** In an object, the key whose value comes next. */
  key?: string;
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;

/** Characters below this code must be escaped in strings. */
const FIRST_UNESCAPED = 0x20;

class Reader {
  private at = 0;
  private readonly open: OpenContainer[] = [];

  constructor(private readonly text: string) {}

  document(): JsonNode {
    for (;;) {
      const root = this.append(this.value());
      if (root) {
        this.take(SPACE);
        if (this.at < this.text.length) throw this.error("trailing_text");
        return root;
      }
    }
  }

  /** Reads the next scalar or empty container. Opens non-empty containers on the way to their first value. */
  private value(): JsonNode {
    for (;;) {
      this.take(SPACE);
      if (this.skip("{")) {
        if (this.skipAfterSpace("}")) return { kind: "object", members: [] };
        this.open.push({ node: { kind: "object", members: [] }, key: this.key() });
      } else if (this.skip("[")) {
        if (this.skipAfterSpace("]")) return { kind: "array", items: [] };
        this.open.push({ node: { kind: "array", items: [] } });
      } else {
        return this.scalar();
      }
    }
  }

  /** Adds a value to its container and closes containers that end after it. Returns the root once it is complete. */
  private append(value: JsonNode): JsonNode | undefined {
    let node = value;
    for (let parent = this.open.at(-1); parent; parent = this.open.at(-1)) {
      if (parent.node.kind === "object") parent.node.members.push({ key: parent.key ?? "", node });
      else parent.node.items.push(node);
      if (this.skipAfterSpace(",")) {
        if (parent.node.kind === "object") parent.key = this.key();
        return undefined;
      }
      const isObject = parent.node.kind === "object";
      if (!this.skipAfterSpace(isObject ? "}" : "]")) throw this.error(isObject ? "no_brace" : "no_bracket");
      this.open.pop();
      node = parent.node;
    }
    return node;
  }

  private scalar(): JsonNode {
    if (this.text[this.at] === '"') return { kind: "string", value: this.string() };
    const number = this.take(NUMBER);
    if (number) return { kind: "number", source: number };
    const literal = this.take(LITERAL);
    if (literal) return { kind: "literal", source: literal as "true" | "false" | "null" };
    throw this.error(this.at < this.text.length ? "no_value" : "no_end");
  }

  private key(): string {
    this.take(SPACE);
    const key = this.string();
    if (!this.skipAfterSpace(":")) throw this.error("no_colon");
    return key;
  }

  private string(): string {
    if (this.text[this.at] !== '"') throw this.error("no_string");
    const start = this.at;
    let escaped = false;
    for (this.at += 1; this.text[this.at] !== '"'; this.at += 1) {
      if (this.text[this.at] === "\\") {
        escaped = true;
        this.at += 1;
      }
      // Negated, because charCodeAt returns NaN beyond the end.
      if (!(this.text.charCodeAt(this.at) >= FIRST_UNESCAPED)) throw this.error("unclosed_string");
    }
    this.at += 1;
    return escaped ? this.unescape(start) : this.text.slice(start + 1, this.at - 1);
  }

  private unescape(start: number): string {
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      throw this.error("bad_escape");
    }
  }

  private skipAfterSpace(character: string): boolean {
    this.take(SPACE);
    return this.skip(character);
  }

  private skip(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private error(fault: JsonFault): JsonError {
    return new JsonError(fault, this.at);
  }
}
