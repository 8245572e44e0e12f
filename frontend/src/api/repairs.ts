// Repairs of dead letters: a dry run first, then the change. An idempotency key makes repeated requests safe.

import {
  keepPreviousData,
  type QueryKey,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useRef } from "react";
import { randomKey } from "~/lib/random";
import { client, unwrap } from "./client";
import { toFailure } from "./problems";
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
  withoutNewer,
} from "./repair-requests";

/** Runs the dry run of a repair. Its token confirms that repair once, within 15 minutes. */
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
 * Runs a repair. An identical request reuses its idempotency key, so it runs only once, even if its response was lost; while
 * an earlier request is still running, it waits for its response. The callbacks are called even after the dialog has closed.
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
      options,
      token,
    }: {
      wanted: RepairRequest;
      options: ExecutionOptions;
      token: string;
    }) {
      const text = JSON.stringify([wanted, options, token]);
      if (sent.current.text !== text) sent.current = { text, key: randomKey() };
      const { key } = sent.current;
      return retryWhileRunning(() => repair(wanted, options, token, key));
    },
    onSuccess(answer) {
      const mayExist = excludePurged(answer);
      for (const resource of CHANGED) {
        void queries.invalidateQueries({
          queryKey: [resource],
          predicate: ({ queryKey }) => mayExist(queryKey),
        });
      }
      callbacks.onAnswer(answer);
    },
    onError: callbacks.onFailure,
  });
}

/** Whether a failed request may have taken effect, because its response was lost. */
export function mayHaveSucceeded(thrown: unknown): boolean {
  const { status, code } = toFailure(thrown);
  return status === 0 || code === "unreadable" || code === "request_running";
}

/** Queue names, for suggestions. */
export function useQueueNames(): readonly string[] {
  const { data } = useQuery({
    queryKey: ["backlog", "queue names"],
    queryFn: ({ signal }) => unwrap(client.GET("/backlog", { signal })),
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

/** Returns a filter that skips queries of purged dead letters: refetching them would only return 404. */
function excludePurged(answer: RepairResult): (key: QueryKey) => boolean {
  const items = answer.kind === "immediate" ? answer.repaired.items : [];
  const purged = new Set<unknown>(items.filter(({ outcome }) => outcome === "purged").map(({ id }) => id));
  return ([resource, kind, id]) => !(resource === "dead-letters" && kind === "one" && purged.has(id));
}

const MAX_WAITS = 20;

/** Repeats a request while an earlier one with the same key is still running. */
async function retryWhileRunning<T>(request: () => Promise<T>): Promise<T> {
  for (let waits = 0; ; waits += 1) {
    try {
      return await request();
    } catch (thrown) {
      const { code, retryAfter = 1 } = toFailure(thrown);
      if (code !== "request_running" || waits === MAX_WAITS) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
    }
  }
}
