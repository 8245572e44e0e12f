import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/operations";

/** Moves through rows with `j` and `k`, and opens the current one with `Enter`. Focuses the link of the current row. */
export function useRows(group: string, addresses: readonly string[]): { current: number | undefined } {
  const [, navigate] = useLocation();
  const [current, setCurrent] = useState<number>();
  const step = (by: number) => {
    if (addresses.length === 0) return;
    const next = current === undefined ? 0 : Math.min(Math.max(current + by, 0), addresses.length - 1);
    setCurrent(next);
    document.querySelectorAll<HTMLElement>("[data-row]")[next]?.focus();
  };
  useShortcuts(group, [
    { keys: "j", label: texts.nextRow, run: () => step(1) },
    { keys: "k", label: texts.previousRow, run: () => step(-1) },
    {
      keys: "Enter",
      label: texts.open,
      run() {
        const address = current === undefined ? undefined : addresses[current];
        if (address) navigate(address);
      },
    },
  ]);
  const count = addresses.length;
  useEffect(() => {
    if (current !== undefined && current >= count) setCurrent(undefined);
  }, [current, count]);
  return { current };
}
