// What is done to dead letters: looked at first as a dry run, then asked for once under one key, however often it is sent.

import {
  keepPreviousData,
  type QueryKey,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useRef } from "react";
import { randomKey } from "~/lib/random";
import { client, dataOf } from "./client";
import { failureOf } from "./problems";
import type { Resource } from "./queries";
import {
  dryRun,
  type ExecutionOptions,
  type RepairRequest,
  type RepairResult,
  repair,
} from "./repair-requests";

export {
  type Action,
  type DryRun,
  type ExecutionOptions,
  type Operation,
  type Repaired,
  type RepairRequest,
  type RepairResult,
  type Selector,
  until,
} from "./repair-requests";

/** The dry run of what is wanted; its token is good for just that, once, for a quarter of an hour. */
export function useDryRun(wanted: RepairRequest) {
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
export function useRepair(callbacks: {
  onAnswer(answer: RepairResult): void;
  onFailure(thrown: Error): void;
}) {
  const queries = useQueryClient();
  const sent = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn({
      wanted,
      manner,
      token,
    }: {
      wanted: RepairRequest;
      manner: ExecutionOptions;
      token: string;
    }) {
      const text = JSON.stringify([wanted, manner, token]);
      if (sent.current.text !== text) sent.current = { text, key: randomKey() };
      const { key } = sent.current;
      return onceItRanThrough(() => repair(wanted, manner, token, key));
    },
    onSuccess(answer) {
      const isThere = isThereAfter(answer);
      for (const resource of CHANGED) {
        void queries.invalidateQueries({
          queryKey: [resource],
          predicate: ({ queryKey }) => isThere(queryKey),
        });
      }
      callbacks.onAnswer(answer);
    },
    onError: callbacks.onFailure,
  });
}

/** Whether a request that failed may have been done all the same: its answer was lost on the way. */
export function mayHaveBeenDone(thrown: unknown): boolean {
  const { status, code } = failureOf(thrown);
  return status === 0 || code === "unreadable" || code === "request_running";
}

/** Names of queues, for suggestions. */
export function useQueueNames(): readonly string[] {
  const { data } = useQuery({
    queryKey: ["backlog", "queue names"],
    queryFn: ({ signal }) => dataOf(client.GET("/backlog", { signal })),
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

/** Whether what is kept under a key may still be there: what was deleted for good is not asked for again. */
function isThereAfter(answer: RepairResult): (key: QueryKey) => boolean {
  const items = answer.at === "once" ? answer.repaired.items : [];
  const purged = new Set<unknown>(items.filter(({ outcome }) => outcome === "purged").map(({ id }) => id));
  return ([resource, kind, id]) => !(resource === "dead-letters" && kind === "one" && purged.has(id));
}

const MOST_WAITS = 20;

/** Asks again while the same request is still running, as long as the service invites it. */
async function onceItRanThrough<T>(ask: () => Promise<T>): Promise<T> {
  for (let waits = 0; ; waits += 1) {
    try {
      return await ask();
    } catch (thrown) {
      const { code, retryAfter = 1 } = failureOf(thrown);
      if (code !== "request_running" || waits === MOST_WAITS) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
    }
  }
}
