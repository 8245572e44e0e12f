// Time series of statistics. Maps the API's column names.

import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";
import { useInterval } from "./live";

/** A value for each step; null where no data was reported, which is not 0. */
export type Column = readonly (number | null)[];

/** Times are in seconds since the epoch; `step` and ages in seconds. */
export interface Statistics {
  from: number;
  to: number;
  step: number;
  startsAt: readonly number[];
  /** False for steps that may still receive data. */
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

/** Handler durations in seconds, per step. */
export interface Quantiles {
  p50: Column;
  p95: Column;
  p99: Column;
}

/** In the API's format: `-15m` and `now`, or timestamps. */
export interface Period {
  from: string;
  to: string;
}

const REFETCH_INTERVAL = 15_000;

export function statistics({ from, to }: Period, queue?: string) {
  const query = queue === undefined ? { from, to } : { from, to, queue };
  return queryOptions({
    queryKey: ["statistics", from, to, queue] as const,
    queryFn: async ({ signal }) =>
      toStatistics(await unwrap(client.GET("/stats", { params: { query }, signal }))),
    placeholderData: keepPreviousData,
  });
}

/** Statistics of a period, for all queues or one. Polls if the period ends now. */
export function useStatistics(period: Period, queue?: string) {
  const interval = useInterval(REFETCH_INTERVAL);
  return useQuery({ ...statistics(period, queue), refetchInterval: period.to === "now" && interval });
}

function toStatistics(response: Schemas["StatsResponse"]): Statistics {
  const [series] = response.series;
  return {
    from: seconds(response.from),
    to: seconds(response.to),
    step: response.step_seconds,
    startsAt: response.starts_at.map(seconds),
    complete: response.complete,
    stepReason: response.step_reason,
    asOf: seconds(response.as_of),
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

/** Minimum number of steps in a chart. */
const MIN_STEPS = 3;

/** Drops leading steps without any data. Unchanged if there is no data at all. */
export function trimEmptyStart(all: Statistics): Statistics {
  const { p50, p95, p99 } = all.handling;
  const known = [all.created, all.sent, all.processed, all.failed, all.dead, all.backlog, all.oldestAge, p50];
  const firstKnown = all.startsAt.findIndex((_, index) => known.some((column) => column[index] != null));
  const first = Math.min(firstKnown, all.startsAt.length - MIN_STEPS);
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

/** Processes report their counts this often, in seconds: a younger step may have no reports yet, so it has no rate. */
const REPORT_INTERVAL = 15;

/** Converts counts to rates. An incomplete step is divided by its elapsed time. */
export function perSecond(
  column: Column,
  { startsAt, step, asOf }: Pick<Statistics, "startsAt" | "step" | "asOf">,
): Column {
  return column.map((value, index) => {
    const elapsed = Math.min(step, asOf - (startsAt[index] ?? 0));
    return value === null || elapsed < REPORT_INTERVAL ? null : value / elapsed;
  });
}
