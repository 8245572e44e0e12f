import { perSecond, type Statistics } from "~/api/statistics";
import { rate } from "~/lib/format";
import * as texts from "~/texts/overview";
import { type Chart, depthLines, History, type Line } from "~/ui/charts";

/** Charts of the time range in the URL. */
export function Charts() {
  return <History charts={CHARTS} />;
}

const CHARTS: readonly Chart[] = [
  {
    title: texts.backlogChart,
    label: texts.backlogLabel,
    lines: backlog,
    empty: texts.backlogEmpty,
    gaps: texts.backlogGaps,
    note: ({ stepReason }) => stepReason && texts.longerSteps(stepReason),
  },
  {
    title: texts.throughputChart,
    label: texts.throughputLabel,
    lines: throughput,
    empty: texts.throughputEmpty,
    gaps: texts.throughputGaps,
  },
];

function backlog(statistics: Statistics): readonly Line[] {
  return depthLines(statistics, {
    depth: texts.backlog,
    depthMeaning: texts.backlogMeaning,
    age: texts.oldestAge,
    ageMeaning: texts.oldestAgeMeaning,
  });
}

function throughput(statistics: Statistics): readonly Line[] {
  const line = (name: string, meaning: string, values: Statistics["sent"]) => ({
    name,
    meaning,
    values: perSecond(values, statistics),
    format: rate,
  });
  const { created, sent, processed, dead } = statistics;
  return [
    { ...line(texts.incoming, texts.inMeaning, created), colour: 1, mark: "none", filled: true },
    { ...line(texts.outgoing, texts.outMeaning, sent), colour: 2, mark: "circle" },
    { ...line(texts.handled, texts.handledMeaning, processed), colour: 4, mark: "square" },
    { ...line(texts.deadLettered, texts.deadLetteredMeaning, dead), colour: 5, mark: "triangle" },
  ];
}
