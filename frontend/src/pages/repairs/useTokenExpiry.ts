import { useEffect, useRef } from "react";
import type { DryRun } from "~/api/repairs";
import { useNow } from "~/lib/clock";

const MIN_LIFETIME = 60_000;

/** Calls `onExpiry` when the confirmation token expires. Waits at least a minute, because clocks of server and browser differ. */
export function useTokenExpiry(dryRun: DryRun | undefined, since: number, onExpiry: () => void): void {
  const now = useNow();
  const ended = useRef(0);
  useEffect(() => {
    if (!dryRun || ended.current === since) return;
    const lifetime = Math.max(MIN_LIFETIME, new Date(dryRun.expiresAt).getTime() - since);
    if (now - since < lifetime) return;
    ended.current = since;
    onExpiry();
  });
}
