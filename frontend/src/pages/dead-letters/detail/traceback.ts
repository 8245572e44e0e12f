// Parses a Python traceback into frames and the text between them.

export interface Frame {
  kind: "frame";
  path: string;
  line: string;
  name: string;
  /** The lines of code, and the markers below them. */
  code: readonly string[];
  /** Whether the frame belongs to the application, not to a library, Python or Outbox. */
  own: boolean;
}

export interface TextPart {
  kind: "words";
  text: string;
}

/** Frames that are shown as one line until expanded. */
export interface Fold {
  kind: "fold";
  frames: readonly Frame[];
}

export type Part = Frame | TextPart;

const FRAME = /^[ |]*File "([^"]*)", line (\d+)(?:, in (.*))?$/;
const CODE = /^(?: {4}|[ |]+ {4})/;

/** Splits a traceback into its parts, in order. */
export function partsOf(traceback: string): readonly Part[] {
  const parts: Part[] = [];
  let code: string[] | undefined;
  for (const line of traceback.replace(/\n$/, "").split("\n")) {
    const found = FRAME.exec(line);
    if (found) {
      const [, path = "", at = "", name = ""] = found;
      code = [];
      parts.push({ kind: "frame", path, line: at, name, code, own: isOwn(path) });
    } else if (code && CODE.test(line)) {
      code.push(line.replace(/^[ |]{4}/, ""));
    } else {
      code = undefined;
      const last = parts.at(-1);
      if (last?.kind === "words") last.text += `\n${line}`;
      else parts.push({ kind: "words", text: line });
    }
  }
  return parts;
}

/** Folds all frames but the most relevant one. */
export function folded(parts: readonly Part[]): readonly (Part | Fold)[] {
  const relevant = mostRelevantFrame(parts);
  const result: (Part | Fold)[] = [];
  let run: Frame[] = [];
  function close() {
    if (run.length > 0) result.push({ kind: "fold", frames: run });
    run = [];
  }
  for (const part of parts) {
    if (part.kind === "frame" && part !== relevant) {
      run.push(part);
    } else {
      close();
      result.push(part);
    }
  }
  close();
  return result;
}

/** Returns the application's deepest frame in the last exception that has one, or else the deepest frame. */
export function mostRelevantFrame(parts: readonly Part[]): Frame | undefined {
  const frames = parts.filter((part): part is Frame => part.kind === "frame");
  return frames.findLast(({ own }) => own) ?? frames.at(-1);
}

const STANDARD_LIBRARY = /\/lib\/python\d+(?:\.\d+)?t?\/|\/python\d*\/lib\//i;
const INSTALLED = /\/(?:site|dist)-packages\//i;
const SYSTEM =
  /(?:^|\/)outbox\/(?:(?:engine|transports|postgres|observers|fastapi|cli|admin|embedded|testing)\/|(?:worker|relay|archiver)\.py$)/;

function isOwn(given: string): boolean {
  const path = given.replaceAll("\\", "/");
  if (path.startsWith("<frozen") || SYSTEM.test(path)) return false;
  return !STANDARD_LIBRARY.test(path) && !INSTALLED.test(path);
}

/** Returns the last two parts of a path, which are enough to recognize the file. */
export function shortPath(path: string): string {
  return path.replaceAll("\\", "/").split("/").slice(-2).join("/");
}
