// JSON read without losing anything: numbers stay the text that they were, members keep their order, and keys that come
// twice are there twice.

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

/** What keeps a text from being JSON; texts/editing.ts has the words. */
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

export class JsonError extends Error {
  constructor(
    readonly fault: JsonFault,
    /** Where in the text. */
    readonly at: number,
  ) {
    super(`${fault} at character ${at + 1}`);
    this.name = "JsonError";
  }
}

/** The tree of a JSON document; throws a `JsonError` where it is none. No depth is too deep. */
export function readJson(text: string): JsonNode {
  // For each key that is typed, an editor asks several times about one text.
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

/** The same, or undefined for what is no JSON document. */
export function readJsonOr(text: string): JsonNode | undefined {
  try {
    return readJson(text);
  } catch (thrown) {
    if (thrown instanceof JsonError) return undefined;
    throw thrown;
  }
}

/** What stands under a key; of several the last, as most readers of JSON have it. */
export function memberOf(node: JsonNode, key: string): JsonNode | undefined {
  return node.kind === "object" ? node.members.findLast((member) => member.key === key)?.node : undefined;
}

/** The document on one line, or with an indentation on many; numbers as they were. */
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
    writeAll("{}", members, indent, line, inner, parts);
  } else if (node.kind === "array") {
    writeAll(
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

function writeAll(
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

/** The line and column of a position in a text, both from 1. */
export function positionOf(text: string, at: number): Position {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, column: at - before.lastIndexOf("\n") };
}

export interface JsonProblem extends Position {
  fault: JsonFault;
}

/** What is wrong with a text that should be JSON, and where; undefined when nothing is. */
export function jsonProblemIn(text: string): JsonProblem | undefined {
  try {
    readJson(text);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    return { fault: thrown.fault, ...positionOf(text, thrown.at) };
  }
}

interface Open {
  node: { kind: "object"; members: Member[] } | { kind: "array"; items: JsonNode[] };
  /** Of an object: the key that waits for its value. */
  key?: string;
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;

/** What comes before it has to be escaped. */
const FIRST_IN_STRINGS = 0x20;

class Reader {
  private at = 0;
  private readonly open: Open[] = [];

  constructor(private readonly text: string) {}

  document(): JsonNode {
    for (;;) {
      const done = this.placed(this.value());
      if (done) {
        this.take(SPACE);
        if (this.at < this.text.length) throw this.error("trailing_text");
        return done;
      }
    }
  }

  /** The next value; of an object or array that is not empty, its first one inside. */
  private value(): JsonNode {
    for (;;) {
      this.take(SPACE);
      if (this.skip("{")) {
        if (this.skips("}")) return { kind: "object", members: [] };
        this.open.push({ node: { kind: "object", members: [] }, key: this.key() });
      } else if (this.skip("[")) {
        if (this.skips("]")) return { kind: "array", items: [] };
        this.open.push({ node: { kind: "array", items: [] } });
      } else {
        return this.plain();
      }
    }
  }

  /** Puts a value where it belongs, and ends what ends with it; the whole, once everything has ended. */
  private placed(value: JsonNode): JsonNode | undefined {
    let node = value;
    for (let parent = this.open.at(-1); parent; parent = this.open.at(-1)) {
      if (parent.node.kind === "object") parent.node.members.push({ key: parent.key ?? "", node });
      else parent.node.items.push(node);
      if (this.skips(",")) {
        if (parent.node.kind === "object") parent.key = this.key();
        return undefined;
      }
      const isObject = parent.node.kind === "object";
      if (!this.skips(isObject ? "}" : "]")) throw this.error(isObject ? "no_brace" : "no_bracket");
      this.open.pop();
      node = parent.node;
    }
    return node;
  }

  private plain(): JsonNode {
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
    if (!this.skips(":")) throw this.error("no_colon");
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
      // beyond the end there is NaN
      if (!(this.text.charCodeAt(this.at) >= FIRST_IN_STRINGS)) throw this.error("unclosed_string");
    }
    this.at += 1;
    return escaped ? this.unescaped(start) : this.text.slice(start + 1, this.at - 1);
  }

  private unescaped(start: number): string {
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      throw this.error("bad_escape");
    }
  }

  private skips(character: string): boolean {
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
