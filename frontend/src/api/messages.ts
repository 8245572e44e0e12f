// Messages that are in the outbox, or are kept there after they were sent.

import { keepPreviousData, queryOptions, useMutation } from "@tanstack/react-query";
import { type JsonNode, memberOf, readJson } from "~/lib/json";
import { client, dataOf, type Schemas, withoutUndefined } from "./client";

export type MessageState = Schemas["MessageSummary"]["state"];
export type MessageLine = Schemas["MessageSummary"];
export type MessagePage = Schemas["MessagePage"];
/** Where a message may be while it is in the outbox, and not sent yet. */
export const UNSENT = ["pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked"] as const;
type Counted = NonNullable<MessagePage["sent_kept"]>;

/** What a message must fit, all of it. */
export interface MessageFilters {
  routing_key?: string | undefined;
  ordering_key?: string | undefined;
  message_id?: string | undefined;
  tracking_id?: string | undefined;
  target_queue?: string | undefined;
  created_after?: string | undefined;
  created_before?: string | undefined;
}

export interface MessageList extends MessageFilters {
  state?: MessageState | undefined;
}

const LIMIT = 50;

/** A page of the list. The answer says which question it belongs to, for an old one stays while the next is on its way. */
export function messages(list: MessageList, cursor: string | undefined) {
  const scope = JSON.stringify([list, cursor]);
  return queryOptions({
    queryKey: ["messages", "list", scope] as const,
    queryFn: async ({ signal }) => {
      const query = { ...list, limit: LIMIT, cursor };
      return {
        ...(await dataOf(client.GET("/messages", { params: { query: withoutUndefined(query) }, signal }))),
        scope,
      };
    },
    placeholderData: keepPreviousData,
  });
}

/** How many fit, up to 10,000: a question of its own, because a list may be quick where counting is not. */
export function countOfMessages(list: MessageList) {
  return queryOptions({
    queryKey: ["messages", "count", JSON.stringify(list)] as const,
    queryFn: async ({ signal }) => {
      const query = withoutUndefined({ ...list, limit: 1, total: true });
      return (await dataOf(client.GET("/messages", { params: { query }, signal }))).total ?? null;
    },
  });
}

/** How many there are in a state, all filters aside; undefined where unknown. */
export function countIn({ states, sent_kept }: MessagePage, state: MessageState): Counted | undefined {
  return (state === "sent" ? sent_kept : states?.[state]) ?? undefined;
}

/** A message with its headers as they were written. */
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

/** Shows one unmasked, which is written to the audit log. Only the component that asked keeps it. */
export function useReveal(id: string) {
  return useMutation({ mutationFn: () => read(id, true), gcTime: 0 });
}

export type Reveal = ReturnType<typeof useReveal>;

async function read(id: string, reveal: boolean, signal?: AbortSignal): Promise<Message> {
  const text = await dataOf<string>(
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

type Carrier = Pick<Message, "body" | "body_base64" | "content_type" | "size" | "masked">;

/** A body as the viewer of bodies takes it. */
export function contentOf(message: Carrier): Schemas["Content"] {
  const { body, body_base64, content_type, size, masked } = message;
  return {
    content: body ?? body_base64,
    encoding: body !== null ? "json" : body_base64 !== null ? "base64" : null,
    content_type,
    size,
    truncated: false,
    masked: masked && (body === null || body.includes("***")),
  };
}

/** Whether an error says more than the state does. */
export function isTelling(error: Schemas["Error"] | null): error is Schemas["Error"] {
  return error !== null && !["unroutable", "stalled", "blocked"].includes(error.message);
}
