import type { Statistics } from "~/api/statistics";
import { number, span } from "~/lib/format";
import type { Line } from "./lines";

/** Names and descriptions of depth and age. */
interface Words {
  depth: string;
  depthMeaning: string;
  age: string;
  ageMeaning: string;
}

/** Lines for depth and oldest age. Ages use the right axis. */
export function depthLines({ backlog, oldestAge }: Statistics, words: Words): readonly Line[] {
  return [
    {
      name: words.depth,
      meaning: words.depthMeaning,
      values: backlog,
      colour: 1,
      mark: "none",
      filled: true,
      whole: true,
      format: number,
    },
    {
      name: words.age,
      meaning: words.ageMeaning,
      values: oldestAge,
      colour: 3,
      mark: "diamond",
      right: true,
      format: span,
    },
  ];
}
