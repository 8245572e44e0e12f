// Pauses and resumes relays, workers and queues. Active pauses are part of the components response.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import * as texts from "~/texts/api";
import { client, type Schemas, unwrap, useIdempotencyHeaders } from "./client";
import type { Resource } from "./queries";

export type Pause = Schemas["PauseResponse"];
export type Scope = Schemas["PauseScope"];

export interface Target {
  scope: Scope;
  /** Empty: all relays, or all workers. */
  name: string;
}

export function usePause(onPaused: (pause: Pause) => void) {
  const queries = useQueryClient();
  const headers = useIdempotencyHeaders();
  return useMutation({
    mutationFn: (wanted: Target & { reason: string | null; expires_at: string | null }) =>
      unwrap(client.POST("/pause", { body: wanted, headers: headers(wanted) })),
    onSuccess(pause) {
      invalidateChanged(queries);
      onPaused(pause);
    },
  });
}

export function useResume(onResumed: (result: Schemas["Resumed"]) => void) {
  const queries = useQueryClient();
  const headers = useIdempotencyHeaders();
  return useMutation({
    mutationFn: (wanted: Target & { reason: string | null }) =>
      unwrap(client.POST("/resume", { body: wanted, headers: headers(wanted) })),
    onSuccess(result) {
      invalidateChanged(queries);
      onResumed(result);
    },
  });
}

/** `all relays`, `worker-1`, `the queue mail`. */
export function describeTarget({ scope, name }: { scope: string; name: string }): string {
  if (scope === "queue") return texts.queueTarget(name);
  return name ? texts.oneTarget(scope, name) : texts.allTargets(scope);
}

const CHANGED: readonly Resource[] = ["pauses", "components", "backlog", "messages", "topology", "queues"];

function invalidateChanged(queries: ReturnType<typeof useQueryClient>): void {
  for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
}
