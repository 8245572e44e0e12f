// Login tokens and open sessions.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";

export type Access = Schemas["AccessResponse"];

/** Lists tokens and sessions. Administrators only. */
export function useAccess() {
  return useQuery({
    queryKey: ["access"] as const,
    queryFn: ({ signal }) => unwrap(client.GET("/access", { signal })),
  });
}

/** Revokes a token permanently. */
export function useRevokeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => unwrap(client.DELETE("/access/tokens/{id}", { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
}

/** Ends a session in all processes of the service. */
export function useEndSession() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => unwrap(client.DELETE("/access/sessions/{id}", { params: { path: { id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
}
