// Messages in the outbox: unsent ones, and sent ones that are still kept.

import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type JsonNode, memberOf, readJson } from "~/lib/json";
import { client, type Schemas, unwrap, withoutUndefined } from "./client";

export type MessageState = Schemas["MessageSummary"]["state"];
export type MessageLine = Schemas["MessageSummary"];
export type MessagePage = Schemas["MessagePage"];
/** States of messages that have not been sent. */
export const UNSENT = ["pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked"] as const;
/** The destination of messages for which no route says anything else. */
const DEFAULT_DESTINATION = "default";

/** Whether a message, or a relay's dead letter, is for a destination that has to be named. */
export function isElsewhere(destination: string | null): destination is string {
  return destination !== null && destination !== DEFAULT_DESTINATION;
}
type Counted = NonNullable<MessagePage["sent_kept"]>;

/** Filters of the message list. A message must match all of them. */
export interface MessageFilters {
  routing_key?: string | undefined;
  ordering_key?: string | undefined;
  message_id?: string | undefined;
  tracking_id?: string | undefined;
  target_queue?: string | undefined;
  destination?: string | undefined;
  created_after?: string | undefined;
  created_before?: string | undefined;
}

export interface MessageList extends MessageFilters {
  state?: MessageState | undefined;
}

const PAGE_SIZE = 50;

/** A page of the list. `scope` identifies the request, because the previous page stays visible while the next one loads. */
export function messages(list: MessageList, cursor: string | undefined) {
  const scope = JSON.stringify([list, cursor]);
  return queryOptions({
    queryKey: ["messages", "list", scope] as const,
    queryFn: async ({ signal }) => {
      const query = { ...list, limit: PAGE_SIZE, cursor };
      return {
        ...(await unwrap(client.GET("/messages", { params: { query: withoutUndefined(query) }, signal }))),
        scope,
      };
    },
    placeholderData: keepPreviousData,
  });
}

/** Counts matching messages, up to 10,000. A separate request, because counting can be much slower than listing. */
export function countOfMessages(list: MessageList) {
  return queryOptions({
    queryKey: ["messages", "count", JSON.stringify(list)] as const,
    queryFn: async ({ signal }) => {
      const query = withoutUndefined({ ...list, limit: 1, total: true });
      return (await unwrap(client.GET("/messages", { params: { query }, signal }))).total ?? null;
    },
  });
}

/** Number of messages in a state, regardless of filters; undefined if unknown. */
export function countIn({ states, sent_kept }: MessagePage, state: MessageState): Counted | undefined {
  return (state === "sent" ? sent_kept : states?.[state]) ?? undefined;
}

/** A message with its headers parsed without loss. */
export type Message = Omit<Schemas["Message"], "headers"> & { headers: readonly Header[] };

export interface Header {
  name: string;
  node: JsonNode;
}

export function message(id: string) {
  return queryOptions({
    queryKey: ["messages", "one", id] as const,
    queryFn: ({ signal }) => read(id, false, signal),
  });
}

/**
 * Reveals a message's masked values, which is written to the audit log. The result is not cached, and belongs to one version: a
 * message that has changed since is masked again.
 */
export function useReveal({ id, version }: Message) {
  const queries = useQueryClient();
  const reveal = useMutation({
    mutationFn: () => read(id, true),
    onSuccess: () => queries.invalidateQueries({ queryKey: message(id).queryKey }),
    gcTime: 0,
  });
  return { ...reveal, data: reveal.data?.version === version ? reveal.data : undefined };
}

/** Reads a message again while updates are suspended. If that fails, the page keeps the message that it shows. */
export function useReread(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => read(id, false),
    onSuccess: (found) => queries.setQueryData(message(id).queryKey, found),
  });
}

export type Reveal = ReturnType<typeof useReveal>;

async function read(id: string, reveal: boolean, signal?: AbortSignal): Promise<Message> {
  const text = await unwrap<string>(
    client.GET("/messages/{id}", {
      params: { path: { id }, query: reveal ? { reveal } : {} },
      parseAs: "text",
      ...(signal ? { signal } : {}),
    }),
  );
  const headers = memberOf(readJson(text), "headers");
  return {
    ...(JSON.parse(text) as Schemas["Message"]),
    headers: headers?.kind === "object" ? headers.members.map(({ key, node }) => ({ name: key, node })) : [],
  };
}

type BodyFields = Pick<Message, "body" | "body_base64" | "content_type" | "size" | "masked" | "body_access">;

/** Converts a message's body for the payload viewer. */
export function contentOf(message: BodyFields): Schemas["Content"] {
  const { body, body_base64, content_type, size, masked, body_access } = message;
  return {
    content: body ?? body_base64,
    encoding: body !== null ? "json" : body_base64 !== null ? "base64" : null,
    content_type,
    size: body_access?.stored_size ?? size,
    access: body_access,
    truncated: false,
    masked: masked && (body === null || body.includes("***")),
  };
}

/** Whether an error adds information to the message's state. */
export function isInformative(error: Schemas["Error"] | null): error is Schemas["Error"] {
  return error !== null && !["unroutable", "stalled", "blocked"].includes(error.message);
}
