// Who may log in with a token, and who is logged in.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, dataOf, type Schemas } from "./client";

export type Access = Schemas["AccessResponse"];

/** For administrators only. */
export function useAccess() {
  return useQuery({
    queryKey: ["access"] as const,
    queryFn: ({ signal }) => dataOf(client.GET("/access", { signal })),
  });
}

/** Revokes a token for good. */
export function useRevokeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => dataOf(client.DELETE("/access/tokens/{id}", { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
}

/** Ends a session in every process. */
export function useEndSession() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => dataOf(client.DELETE("/access/sessions/{id}", { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
}
