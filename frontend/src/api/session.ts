// Who is looking, and what they may do.

import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { answered, client, type Schemas } from "./client";

export type Identity = Schemas["Identity"];
export type Permission = keyof Schemas["Permissions"];

export const session = queryOptions({
  queryKey: ["session"] as const,
  queryFn: ({ signal }) => answered(client.GET("/session", { signal })),
  staleTime: 60_000,
});

export async function logIn(token: string): Promise<Identity> {
  return await answered(client.POST("/session", { body: { token } }));
}

export async function logOut(): Promise<void> {
  await answered(client.DELETE("/session"));
}

/** Why the person who looks may not do this, as a sentence for a disabled button; undefined when they may. */
export function useWhyNot(permission: Permission): string | undefined {
  const { data } = useQuery(session);
  return data && whyNot(data, permission);
}

/** Logs out here and forgets everything that was read. */
export function useLogOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await logOut();
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    await queries.resetQueries({ queryKey: session.queryKey });
  };
}

const DEEDS: Record<Permission, string> = {
  repair: "requeue, discard, restore or edit",
  pause: "pause and resume",
  purge: "delete for good",
  read_audit: "read the audit",
  reveal: "reveal masked values",
};

export function whyNot(identity: Identity, permission: Permission): string | undefined {
  if (identity.may[permission]) return undefined;
  if (identity.read_only && permission !== "read_audit" && permission !== "reveal") {
    return "This installation is read-only: nothing can be changed here.";
  }
  const needed = permission === "purge" ? "admin" : "operator";
  return `You are here as ${identity.role}; to ${DEEDS[permission]} takes the role ${needed}.`;
}
