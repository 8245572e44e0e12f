import { useConnection } from "~/api/live";
import { useNow } from "~/lib/clock";
import { age } from "~/lib/format";
import { usePreferences } from "~/lib/preferences";

/** How old the answer is that a part of the page shows; `at` in milliseconds since the epoch. */
export function ShownAge({ at }: { at: number }) {
  const seconds = (useNow() - at) / 1000;
  return <span>as of {age(seconds)} ago</span>;
}

/** What the page does by itself, in words: for the shell, and where numbers stand still on purpose. */
export function useLiveWords(): { words: string; tone: "good" | "warn" | "neutral" } {
  const connection = useConnection();
  const { live } = usePreferences();
  if (!live) return { words: "Paused", tone: "neutral" };
  if (connection === "live") return { words: "Live", tone: "good" };
  if (connection === "resting") return { words: "Resting", tone: "neutral" };
  if (connection === "away") return { words: "Reconnecting", tone: "warn" };
  return { words: "Connecting", tone: "neutral" };
}
