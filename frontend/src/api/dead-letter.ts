// One dead letter with everything. Numbers of headers stay the text that they were sent as.

import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { type JsonNode, memberOf, readJson } from "~/lib/json";
import { randomKey } from "~/lib/random";
import { client, dataOf, type Schemas } from "./client";
import type { Resource } from "./queries";

type Shown = Schemas["DeadLetterResponse"];
type EditionShown = Schemas["EditionResponse"];

export type FailedAttempt = Schemas["FailureResponse"];
export type Requeue = Schemas["RequeueResponse"];

export interface Edition extends Omit<EditionShown, "headers"> {
  headers: JsonNode | undefined;
}

export interface DeadLetter extends Omit<Shown, "headers" | "properties" | "editions"> {
  headers: JsonNode;
  properties: JsonNode;
  editions: readonly Edition[];
}

/** A letter as it is shown to everybody: masked. */
export function deadLetter(id: string) {
  return queryOptions({
    queryKey: ["dead-letters", "one", id] as const,
    queryFn: ({ signal }) => masked(id, signal),
  });
}

/** Shows a letter as it is, which is written to the audit: therefore never by itself, and nothing of it is kept. */
export function useReveal(id: string) {
  return useMutation({ mutationFn: () => reveal(id), gcTime: 0 });
}

/** Saves the body, all of it as it is, which is written to the audit. */
export function useDownload(id: string) {
  return useMutation({ mutationFn: () => body(id), gcTime: 0 });
}

export function masked(id: string, signal?: AbortSignal): Promise<DeadLetter> {
  return read(id, false, signal);
}

export function reveal(id: string): Promise<DeadLetter> {
  return read(id, true);
}

export function body(id: string): Promise<Blob> {
  return dataOf<Blob>(client.GET("/dlq/{id}/body", { params: { path: { id } }, parseAs: "blob" }));
}

async function read(id: string, reveal: boolean, signal?: AbortSignal): Promise<DeadLetter> {
  const text = await dataOf<string>(
    client.GET("/dlq/{id}", {
      params: { path: { id }, query: reveal ? { reveal } : {} },
      parseAs: "text",
      ...(signal && { signal }),
    }),
  );
  return letterIn(text);
}

/** A letter out of the text of an answer. */
export function letterIn(text: string): DeadLetter {
  const shown = JSON.parse(text) as Shown;
  const exact = readJson(text);
  const editions = itemsOf(memberOf(exact, "editions"));
  return {
    ...shown,
    headers: memberOf(exact, "headers") ?? NONE,
    properties: memberOf(exact, "properties") ?? NONE,
    editions: shown.editions.map((edition, index) => {
      const edited = editions[index];
      const headers = edited && memberOf(edited, "headers");
      return { ...edition, headers: headers?.kind === "object" ? headers : undefined };
    }),
  };
}

const NONE: JsonNode = { kind: "object", members: [] };

function itemsOf(node: JsonNode | undefined): readonly JsonNode[] {
  return node?.kind === "array" ? node.items : [];
}

/** What was edited: parts that are left out stay as they are. */
export interface Edit {
  version: number;
  body?: { encoding: "text" | "base64"; content: string };
  /** As JSON text, which goes as it is, so that no number is rounded on the way. */
  headers?: string;
}

export interface EditedRequeue {
  edit: Edit;
  reason: string;
  /** Also what the consumer's schema refuses. */
  force: boolean;
}

const CHANGED: readonly Resource[] = ["dead-letters", "groups", "messages", "backlog", "chains"];

/** Requeues an edited letter. Sent again unchanged it has the same key, and is not done twice. */
export function useEditedRequeue(id: string) {
  const queries = useQueryClient();
  const keys = useRef(new Map<string, string>());
  return useMutation({
    mutationFn(wanted: EditedRequeue) {
      const text = requestText(id, wanted);
      const key = keys.current.get(text) ?? randomKey();
      keys.current.set(text, key);
      return send(text, key);
    },
    onSuccess: () =>
      Promise.all(CHANGED.map((resource) => queries.invalidateQueries({ queryKey: [resource] }))),
  });
}

/** The request as JSON text, of which the headers are a part that was text already. */
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
  const answer = await dataOf(
    client.POST("/requeue", {
      body: { selector: {}, force: false, dry_run: false },
      bodySerializer: () => text,
      headers: { "Idempotency-Key": key },
    }),
  );
  return "items" in answer ? answer.items[0] : undefined;
}
