// The current user and their permissions.

import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import * as texts from "~/texts/api";
import { client, type Schemas, unwrap } from "./client";

export type Identity = Schemas["Identity"];
export type Permission = keyof Schemas["Permissions"];

export const session = queryOptions({
  queryKey: ["session"] as const,
  queryFn: ({ signal }) => unwrap(client.GET("/session", { signal })),
  staleTime: 60_000,
});

/** Available login methods. A provider is an external site. */
export const loginMethods = queryOptions({
  queryKey: ["login-methods"] as const,
  queryFn: ({ signal }) => unwrap(client.GET("/session/methods", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export async function logIn(token: string): Promise<Identity> {
  return await unwrap(client.POST("/session", { body: { token } }));
}

export async function logOut(): Promise<void> {
  await unwrap(client.DELETE("/session"));
}

/** Why the current user lacks a permission, as text for a disabled button; undefined if they have it. */
export function useWhyNot(permission: Permission): string | undefined {
  const { data } = useQuery(session);
  return data && whyNot(data, permission);
}

/** Logs out and clears all cached data. */
export function useLogOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await logOut();
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    await queries.resetQueries({ queryKey: session.queryKey });
  };
}

export function whyNot(identity: Identity, permission: Permission): string | undefined {
  if (identity.permissions[permission]) return undefined;
  if (identity.read_only && permission !== "read_audit" && permission !== "reveal") {
    return texts.readOnly;
  }
  const needed = permission === "purge" ? "admin" : "operator";
  return texts.roleRequired(identity.role, needed, texts.permittedActions[permission]);
}
