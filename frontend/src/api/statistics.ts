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
  dead: Column;
  backlog: Column;
  oldestAge: Column;
}

/** As the API takes it: `-15m` and `now`, or moments. */
export interface Period {
  from: string;
  to: string;
}

const TOLD_EVERY = 15_000;

export function statistics({ from, to }: Period) {
  return queryOptions({
    queryKey: ["statistics", from, to] as const,
    queryFn: async ({ signal }) =>
      columns(await dataOf(client.GET("/stats", { params: { query: { from, to } }, signal }))),
    placeholderData: keepPreviousData,
  });
}

/** Statistics of a period; one that ends now is read as often as its newest step grows. */
export function useStatistics(period: Period) {
  const interval = useInterval(TOLD_EVERY);
  return useQuery({ ...statistics(period), refetchInterval: period.to === "now" && interval });
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
    dead: series?.dead ?? [],
    backlog: series?.backlog ?? [],
    oldestAge: series?.oldest_age_seconds ?? [],
  };
}

function seconds(moment: string): number {
  return Date.parse(moment) / 1000;
}
