// One dead letter in full. Numbers in headers keep all their digits.

import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { type JsonNode, memberOf, readJson } from "~/lib/json";
import { randomKey } from "~/lib/random";
import { client, type Schemas, unwrap } from "./client";
import type { Resource } from "./queries";

type DeadLetterResponse = Schemas["DeadLetterResponse"];
type EditionResponse = Schemas["EditionResponse"];

export type FailedAttempt = Schemas["FailureResponse"];
export type Requeue = Schemas["RequeueResponse"];

export interface Edition extends Omit<EditionResponse, "headers"> {
  headers: JsonNode | undefined;
}

export interface DeadLetter extends Omit<DeadLetterResponse, "headers" | "properties" | "editions"> {
  headers: JsonNode;
  properties: JsonNode;
  editions: readonly Edition[];
}

/** A dead letter with masked values. */
export function deadLetter(id: string) {
  return queryOptions({
    queryKey: ["dead-letters", "one", id] as const,
    queryFn: ({ signal }) => fetchMasked(id, signal),
  });
}

/** Reveals masked values. Each reveal is written to the audit log, so it runs only on request, and nothing is cached. */
export function useReveal(id: string) {
  return useMutation({ mutationFn: () => fetchRevealed(id), gcTime: 0 });
}

/** Downloads the complete, unmasked body. Each download is written to the audit log. */
export function useDownload(id: string) {
  return useMutation({ mutationFn: () => fetchBody(id), gcTime: 0 });
}

export function fetchMasked(id: string, signal?: AbortSignal): Promise<DeadLetter> {
  return read(id, false, signal);
}

export function fetchRevealed(id: string): Promise<DeadLetter> {
  return read(id, true);
}

export function fetchBody(id: string): Promise<Blob> {
  return unwrap<Blob>(client.GET("/dlq/{id}/body", { params: { path: { id } }, parseAs: "blob" }));
}

async function read(id: string, reveal: boolean, signal?: AbortSignal): Promise<DeadLetter> {
  const text = await unwrap<string>(
    client.GET("/dlq/{id}", {
      params: { path: { id }, query: reveal ? { reveal } : {} },
      parseAs: "text",
      ...(signal && { signal }),
    }),
  );
  return parseDeadLetter(text);
}

/** Parses a dead letter from the text of a response. */
export function parseDeadLetter(text: string): DeadLetter {
  const response = JSON.parse(text) as DeadLetterResponse;
  // JSON.parse rounds numbers beyond 2^53, so these parts are read with their digits.
  const exact = readJson(text);
  const editions = itemsOf(memberOf(exact, "editions"));
  return {
    ...response,
    headers: memberOf(exact, "headers") ?? EMPTY_OBJECT,
    properties: memberOf(exact, "properties") ?? EMPTY_OBJECT,
    editions: response.editions.map((edition, index) => {
      const edited = editions[index];
      const headers = edited && memberOf(edited, "headers");
      return { ...edition, headers: headers?.kind === "object" ? headers : undefined };
    }),
  };
}

const EMPTY_OBJECT: JsonNode = { kind: "object", members: [] };

function itemsOf(node: JsonNode | undefined): readonly JsonNode[] {
  return node?.kind === "array" ? node.items : [];
}

/** Edited parts. Parts that are left out stay unchanged. */
export interface Edit {
  version: number;
  body?: { encoding: "text" | "base64"; content: string };
  /** JSON text, sent unchanged, because parsing it would round large numbers. */
  headers?: string;
}

export interface EditedRequeue {
  edit: Edit;
  reason: string;
  /** Requeue even if the consumer's schema rejects it. */
  force: boolean;
}

const CHANGED: readonly Resource[] = ["dead-letters", "groups", "messages", "backlog", "chains"];

/**
 * Requeues an edited dead letter. An identical request reuses its idempotency key, so it runs only once, until it was refused: the
 * server would repeat that answer, also once its reason is gone.
 */
export function useEditedRequeue(id: string) {
  const queries = useQueryClient();
  const keys = useRef(new Map<string, string>());
  return useMutation({
    async mutationFn(wanted: EditedRequeue) {
      const text = requestText(id, wanted);
      const key = keys.current.get(text) ?? randomKey();
      keys.current.set(text, key);
      const item = await send(text, key);
      if (item?.outcome !== "requeued") keys.current.delete(text);
      return item;
    },
    onSuccess: () =>
      Promise.all(CHANGED.map((resource) => queries.invalidateQueries({ queryKey: [resource] }))),
  });
}

/** Builds the request as JSON text, because the headers already are JSON text. */
export function requestText(id: string, { edit, reason, force }: EditedRequeue): string {
  const parts = [`"version":${edit.version}`];
  if (edit.body) {
    parts.push(
      `"encoding":${JSON.stringify(edit.body.encoding)}`,
      `"body":${JSON.stringify(edit.body.content)}`,
    );
  }
  if (edit.headers !== undefined) parts.push(`"headers":${edit.headers}`);
  const others = JSON.stringify({ selector: { ids: [id] }, force, reason: reason.trim() || null });
  return `${others.slice(0, -1)},"edit":{${parts.join(",")}}}`;
}

async function send(text: string, key: string): Promise<Schemas["ItemResponse"] | undefined> {
  const answer = await unwrap(
    client.POST("/requeue", {
      body: { selector: {}, force: false, dry_run: false },
      bodySerializer: () => text,
      headers: { "Idempotency-Key": key },
    }),
  );
  return "items" in answer ? answer.items[0] : undefined;
}
