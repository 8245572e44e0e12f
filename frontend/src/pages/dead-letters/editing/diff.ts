// A difference of two texts as numbered lines, with a few lines of what is the same around each change.

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

const AROUND = 3;

export function linesOf(pieces: readonly Piece[]): readonly ChangedLine[] {
  const result: ChangedLine[] = [];
  let before = 0;
  let after = 0;
  pieces.forEach((piece, index) => {
    const kind = piece.added ? "added" : piece.removed ? "removed" : "same";
    const lines = piece.value.replace(/\n$/, "").split("\n");
    const left =
      kind === "same" ? leftOut(lines.length, index === 0, index === pieces.length - 1) : undefined;
    lines.forEach((text, at) => {
      if (kind !== "added") before += 1;
      if (kind !== "removed") after += 1;
      if (left && at >= left.from && at < left.to) {
        if (at === left.from) result.push({ kind: "omitted", count: left.to - left.from });
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

/** Which of so many lines that are the same are not shown. */
function leftOut(count: number, first: boolean, last: boolean): { from: number; to: number } | undefined {
  const from = first ? 0 : AROUND;
  const to = last ? count : count - AROUND;
  return to - from > 1 ? { from, to } : undefined;
}
