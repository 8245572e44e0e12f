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
  return new Reader(text).document();
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

/** A tree as text again, in one line. */
export function writeJson(node: JsonNode): string {
  switch (node.kind) {
    case "object":
      return `{${node.members.map(({ key, node: inner }) => `${JSON.stringify(key)}: ${writeJson(inner)}`).join(", ")}}`;
    case "array":
      return `[${node.items.map(writeJson).join(", ")}]`;
    case "string":
      return JSON.stringify(node.value);
    default:
      return node.source;
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
