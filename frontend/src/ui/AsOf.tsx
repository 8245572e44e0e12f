import { useConnection } from "~/api/live";
import { useNow } from "~/lib/clock";
import { age } from "~/lib/format";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/ui";

/** How old the answer is that a part of the page shows; `at` in milliseconds since the epoch. */
export function AsOf({ at }: { at: number }) {
  const seconds = (useNow() - at) / 1000;
  return <span>{texts.asOf(age(seconds))}</span>;
}

/** What the page does by itself, in words: for the shell, and where numbers stand still on purpose. */
export function useLiveStatus(): { words: string; tone: "good" | "warn" | "neutral" } {
  const connection = useConnection();
  const { live } = usePreferences();
  if (!live) return { words: texts.livePaused, tone: "neutral" };
  if (connection === "live") return { words: texts.live, tone: "good" };
  if (connection === "resting") return { words: texts.liveIdle, tone: "neutral" };
  if (connection === "away") return { words: texts.reconnecting, tone: "warn" };
  return { words: texts.connecting, tone: "neutral" };
}
