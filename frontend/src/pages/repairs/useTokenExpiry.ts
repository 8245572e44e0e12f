import { useEffect, useRef } from "react";
import type { DryRun } from "~/api/repairs";
import { useNow } from "~/lib/clock";

const SHORTEST_LIFETIME = 60_000;

/** Calls `end` when the token is over, by the time that it was given: clocks of servers and browsers differ. */
export function useTokenExpiry(plan: DryRun | undefined, since: number, end: () => void): void {
  const now = useNow();
  const ended = useRef(0);
  useEffect(() => {
    if (!plan || ended.current === since) return;
    const lifetime = Math.max(SHORTEST_LIFETIME, new Date(plan.expiresAt).getTime() - since);
    if (now - since < lifetime) return;
    ended.current = since;
    end();
  });
}
