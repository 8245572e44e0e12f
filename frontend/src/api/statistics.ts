// What happened step by step. The wire's columns are named here, once.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";
import { useInterval } from "./live";

/** A value for each step; null where no data was reported, which is not 0. */
export type Column = readonly (number | null)[];

/** Times are seconds since the epoch, `step` and ages seconds. */
export interface Statistics {
  from: number;
  to: number;
  step: number;
  startsAt: readonly number[];
  /** False for steps of which more may be told. */
  complete: readonly boolean[];
  /** Why steps are longer than usual. */
  stepReason: string | null;
  asOf: number;
  created: Column;
  sent: Column;
  processed: Column;
  failed: Column;
  dead: Column;
  handling: Quantiles;
  backlog: Column;
  oldestAge: Column;
}

/** Seconds that a handler ran, in each step. */
export interface Quantiles {
  p50: Column;
  p95: Column;
  p99: Column;
}

/** As the API takes it: `-15m` and `now`, or moments. */
export interface Period {
  from: string;
  to: string;
}

const TOLD_EVERY = 15_000;

export function statistics({ from, to }: Period, queue?: string) {
  const query = queue === undefined ? { from, to } : { from, to, queue };
  return queryOptions({
    queryKey: ["statistics", from, to, queue] as const,
    queryFn: async ({ signal }) => columns(await dataOf(client.GET("/stats", { params: { query }, signal }))),
    placeholderData: keepPreviousData,
  });
}

/** Statistics of a period, of all queues or of one; one that ends now is read as often as its newest step grows. */
export function useStatistics(period: Period, queue?: string) {
  const interval = useInterval(TOLD_EVERY);
  return useQuery({ ...statistics(period, queue), refetchInterval: period.to === "now" && interval });
}

function columns(answer: Schemas["StatsResponse"]): Statistics {
  const [series] = answer.series;
  return {
    from: seconds(answer.from),
    to: seconds(answer.to),
    step: answer.step_seconds,
    startsAt: answer.starts_at.map(seconds),
    complete: answer.complete,
    stepReason: answer.step_reason,
    asOf: seconds(answer.as_of),
    created: series?.created ?? [],
    sent: series?.sent ?? [],
    processed: series?.processed ?? [],
    failed: series?.failed ?? [],
    dead: series?.dead ?? [],
    handling: series?.handling_seconds ?? { p50: [], p95: [], p99: [] },
    backlog: series?.backlog ?? [],
    oldestAge: series?.oldest_age_seconds ?? [],
  };
}

function seconds(moment: string): number {
  return Date.parse(moment) / 1000;
}

/** Steps that a chart has at least. */
const FEWEST = 3;

/** Without the steps before the first of which anything is known; unchanged if nothing is. */
export function sinceFirstKnown(all: Statistics): Statistics {
  const { p50, p95, p99 } = all.handling;
  const known = [all.created, all.sent, all.processed, all.failed, all.dead, all.backlog, all.oldestAge, p50];
  const firstKnown = all.startsAt.findIndex((_, index) => known.some((column) => column[index] != null));
  const first = Math.min(firstKnown, all.startsAt.length - FEWEST);
  if (first <= 0) return all;
  const cut = (column: Column) => column.slice(first);
  return {
    ...all,
    from: all.startsAt[first] ?? all.from,
    startsAt: all.startsAt.slice(first),
    complete: all.complete.slice(first),
    created: cut(all.created),
    sent: cut(all.sent),
    processed: cut(all.processed),
    failed: cut(all.failed),
    dead: cut(all.dead),
    handling: { p50: cut(p50), p95: cut(p95), p99: cut(p99) },
    backlog: cut(all.backlog),
    oldestAge: cut(all.oldestAge),
  };
}

/** Seconds of a step that have to be over before its speed says anything: processes tell what they counted so often. */
const TOLD_WITHIN = 15;

/** Numbers of steps as speeds; the newest is divided by what is over of it. */
export function perSecond(
  column: Column,
  { startsAt, step, asOf }: Pick<Statistics, "startsAt" | "step" | "asOf">,
): Column {
  return column.map((value, index) => {
    const over = Math.min(step, asOf - (startsAt[index] ?? 0));
    return value === null || over < TOLD_WITHIN ? null : value / over;
  });
}
