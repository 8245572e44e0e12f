// JSON as text: written from its tree as exactly as it was read, and the places in it that errors are at.

import { JsonError, type JsonFault, type JsonNode, readJson } from "./json";

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
