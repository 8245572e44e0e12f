// Pausing relays, workers and queues, and taking that back. Pauses themselves come with the components.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { randomKey } from "~/lib/random";
import * as texts from "~/texts/api";
import { client, dataOf, type Schemas } from "./client";
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
  const headers = useKeys();
  return useMutation({
    mutationFn: (wanted: Target & { reason: string | null; expires_at: string | null }) =>
      dataOf(client.POST("/pause", { body: wanted, headers: headers(wanted) })),
    onSuccess(pause) {
      readAgain(queries);
      onPaused(pause);
    },
  });
}

export function useResume(onResumed: (came: Schemas["Resumed"]) => void) {
  const queries = useQueryClient();
  const headers = useKeys();
  return useMutation({
    mutationFn: (wanted: Target & { reason: string | null }) =>
      dataOf(client.POST("/resume", { body: wanted, headers: headers(wanted) })),
    onSuccess(came) {
      readAgain(queries);
      onResumed(came);
    },
  });
}

/** `all relays`, `worker-1`, `the queue mail`. */
export function nameOf({ scope, name }: { scope: string; name: string }): string {
  if (scope === "queue") return texts.queueTarget(name);
  return name ? texts.oneTarget(scope, name) : texts.allTargets(scope);
}

const CHANGED: readonly Resource[] = ["pauses", "components", "backlog", "messages", "topology", "queues"];

function readAgain(queries: ReturnType<typeof useQueryClient>): void {
  for (const resource of CHANGED) void queries.invalidateQueries({ queryKey: [resource] });
}

/** The same request sent again has the same key. */
function useKeys(): (request: unknown) => { "Idempotency-Key": string } {
  const sent = useRef({ text: "", key: "" });
  return (request) => {
    const text = JSON.stringify(request);
    if (sent.current.text !== text) sent.current = { text, key: randomKey() };
    return { "Idempotency-Key": sent.current.key };
  };
}
