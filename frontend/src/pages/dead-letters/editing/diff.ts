// A diff as numbered lines, with a few unchanged lines of context around each change.

export interface Piece {
  value: string;
  added?: boolean;
  removed?: boolean;
}

export type ChangedLine =
  | {
      kind: "added" | "removed" | "same";
      text: string;
      before: number | undefined;
      after: number | undefined;
    }
  | { kind: "omitted"; count: number };

const CONTEXT_LINES = 3;

export function linesOf(pieces: readonly Piece[]): readonly ChangedLine[] {
  const result: ChangedLine[] = [];
  let before = 0;
  let after = 0;
  pieces.forEach((piece, index) => {
    const kind = piece.added ? "added" : piece.removed ? "removed" : "same";
    const lines = piece.value.replace(/\n$/, "").split("\n");
    const omitted =
      kind === "same" ? omittedRange(lines.length, index === 0, index === pieces.length - 1) : undefined;
    lines.forEach((text, at) => {
      if (kind !== "added") before += 1;
      if (kind !== "removed") after += 1;
      if (omitted && at >= omitted.from && at < omitted.to) {
        if (at === omitted.from) result.push({ kind: "omitted", count: omitted.to - omitted.from });
        return;
      }
      result.push({
        kind,
        text,
        before: kind === "added" ? undefined : before,
        after: kind === "removed" ? undefined : after,
      });
    });
  });
  return result;
}

/** Returns the range of unchanged lines to omit. */
function omittedRange(
  count: number,
  first: boolean,
  last: boolean,
): { from: number; to: number } | undefined {
  const from = first ? 0 : CONTEXT_LINES;
  const to = last ? count : count - CONTEXT_LINES;
  return to - from > 1 ? { from, to } : undefined;
}
