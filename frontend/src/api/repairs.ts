// What is done to dead letters: looked at first as a dry run, then asked for once under one key, however often it is sent.

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { randomKey } from "~/lib/random";
import { answered, client, type Schemas } from "./client";
import { failureOf } from "./problems";
import type { Resource } from "./queries";

export type Action = Schemas["Action"];
export type Operation = Schemas["OperationAnswer"];
export type Repaired = Schemas["RepairedAnswer"];

export type Selector = { ids: string[] } | { filter: Schemas["DeadLetterFilters"] } | { group_id: string };

/** What is to be done, to which dead letters: what a dry run is about, and what its token is good for. */
export interface Wanted {
  action: Action;
  selector: Selector;
  destination: Schemas["RequeueRequest"]["destination"];
  maxItems: number | undefined;
  force: boolean;
  edit: Schemas["EditRequest"] | undefined;
}

/** How carefully, and why: it may change after the dry run. */
export interface Manner {
  rate: number | undefined;
  canary: Schemas["CanaryRequest"] | undefined;
  stopRatio: number | undefined;
  reason: string | undefined;
}

export interface Sampled {
  id: string;
  queue: string;
  error: { type: string; message: string };
  failedAt: string;
  preview: string;
}

/** What a dry run found. */
export interface Plan {
  count: number;
  byQueue: Record<string, number>;
  byException: Record<string, number>;
  sample: readonly Sampled[];
  warnings: readonly string[];
  token: string;
  expiresAt: string;
  /** When it was answered, by the server's clock; undefined where something in between took that away. */
  at: string | undefined;
}

export type Answer = { at: "once"; repaired: Repaired } | { at: "length"; operation: Operation };

/** The dry run of what is wanted; its token is good for just that, once, for a quarter of an hour. */
export function useDryRun(wanted: Wanted) {
  return useQuery({
    queryKey: ["dry-run", wanted],
    queryFn: ({ signal }) => dryRun(wanted, signal),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

/**
 * Does what is wanted, and tells what came of it even to a dialog that was closed meanwhile. Sent again unchanged, because no answer came, it has the same key and is not done twice; while an
 * earlier try is still running, its answer is waited for.
 */
export function useRepair(told: { onAnswer(answer: Answer): void; onFailure(thrown: Error): void }) {
  const queries = useQueryClient();
  const sent = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn({ wanted, manner, token }: { wanted: Wanted; manner: Manner; token: string }) {
      const text = JSON.stringify([wanted, manner, token]);
      if (sent.current.text !== text) sent.current = { text, key: randomKey() };
      const { key } = sent.current;
      return onceItRanThrough(() => repair(wanted, manner, token, key));
    },
    onSuccess(answer) {
      for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
      told.onAnswer(answer);
    },
    onError: told.onFailure,
  });
}

/** Whether a request that failed may have been done all the same: its answer was lost on the way. */
export function mayHaveBeenDone(thrown: unknown): boolean {
  const { status, code } = failureOf(thrown);
  return status === 0 || code === "unreadable" || code === "request-running";
}

/** Names of queues, for suggestions. */
export function useQueueNames(): readonly string[] {
  const { data } = useQuery({
    queryKey: ["backlog", "queue names"],
    queryFn: ({ signal }) => answered(client.GET("/backlog", { signal })),
    select: ({ queues }) => (queues ?? []).map(({ queue }) => queue).sort(),
    staleTime: 60_000,
  });
  return data ?? [];
}

const CHANGED: readonly Resource[] = [
  "dead-letters",
  "groups",
  "operations",
  "messages",
  "backlog",
  "chains",
];

async function dryRun(wanted: Wanted, signal: AbortSignal): Promise<Plan> {
  const { found, at } = await sendTo(wanted, { dry_run: true }, signal);
  return planOf(found as Schemas["PlanAnswer"], at);
}

function planOf(found: Schemas["PlanAnswer"], at: string | undefined): Plan {
  return {
    count: found.count,
    byQueue: found.by_queue,
    byException: found.by_exception,
    sample: found.sample.map(({ id, queue, error, failed_at, preview }) => ({
      id,
      queue,
      error,
      failedAt: failed_at,
      preview,
    })),
    warnings: found.warnings,
    token: found.confirm_token,
    expiresAt: found.expires_at,
    at,
  };
}

async function repair(wanted: Wanted, manner: Manner, token: string, key: string): Promise<Answer> {
  const { rate, canary, stopRatio, reason } = manner;
  const careful =
    wanted.action === "requeue"
      ? {
          ...(rate !== undefined && { rate_per_second: rate }),
          ...(canary && { canary }),
          ...(stopRatio !== undefined && { stop_on_failure_ratio: stopRatio }),
        }
      : {};
  const { found } = await sendTo(
    wanted,
    { dry_run: false, confirm_token: token, ...(reason && { reason }), ...careful },
    undefined,
    key,
  );
  return "progress" in found
    ? { at: "length", operation: found }
    : { at: "once", repaired: found as Repaired };
}

/** The same dead letters without those that died after a dry run; undefined where that leaves none out. */
export function until(selector: Selector, at: string | undefined): Selector | undefined {
  if ("ids" in selector || at === undefined) return undefined;
  const moment = new Date(at).getTime() + 1_000;
  const filter: Partial<Schemas["DeadLetterFilters"]> =
    "filter" in selector ? selector.filter : { group_id: selector.group_id };
  if (filter.failed_before && new Date(filter.failed_before).getTime() <= moment) return undefined;
  const whole = { ...filter, failed_before: new Date(moment).toISOString() };
  return { filter: whole as Schemas["DeadLetterFilters"] };
}

interface Further {
  dry_run: boolean;
  confirm_token?: string;
  reason?: string;
}

async function sendTo(wanted: Wanted, further: Further, signal?: AbortSignal, key?: string) {
  const request = posted(wanted, further, signal, key);
  const found = await answered<Found>(request);
  const { response } = await request;
  const at = new Date(response.headers.get("date") ?? "");
  return { found, at: Number.isNaN(at.getTime()) ? undefined : at.toISOString() };
}

function posted(wanted: Wanted, further: Further, signal?: AbortSignal, key?: string) {
  const { action, selector, destination, maxItems, force, edit } = wanted;
  const common = { selector, ...(maxItems !== undefined && { max_items: maxItems }), ...further };
  const options = { params: { header: key ? { "Idempotency-Key": key } : {} }, ...(signal && { signal }) };
  switch (action) {
    case "requeue": {
      const body = { ...common, force, ...(destination && { destination }), ...(edit && { edit }) };
      return client.POST("/requeue", { body, ...options });
    }
    case "restore":
      return client.POST("/restore", { body: common, ...options });
    default: {
      const body = { ...common, purge: action === "purge", force: action === "purge" && force };
      return client.POST("/discard", { body, ...options });
    }
  }
}

type Found = Repaired | Schemas["PlanAnswer"] | Operation;

const MOST_WAITS = 20;

/** Asks again while the same request is still running, as long as the service invites it. */
async function onceItRanThrough<T>(ask: () => Promise<T>): Promise<T> {
  for (let waits = 0; ; waits += 1) {
    try {
      return await ask();
    } catch (thrown) {
      const { code, retryAfter = 1 } = failureOf(thrown);
      if (code !== "request-running" || waits === MOST_WAITS) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
    }
  }
}
