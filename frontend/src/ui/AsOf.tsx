import { useConnection } from "~/api/live";
import { useNow } from "~/lib/clock";
import { age } from "~/lib/format";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/ui";

/** Age of the data that a part of the page shows; `at` in milliseconds since the epoch, 0 while they are still loading. */
export function AsOf({ at }: { at: number }) {
  const seconds = (useNow() - at) / 1000;
  if (at === 0) return null;
  return <span>{texts.asOf(age(seconds))}</span>;
}

/** Status of live updates with its label. */
export function useLiveStatus(): { words: string; tone: "good" | "warn" | "neutral" } {
  const connection = useConnection();
  const { live } = usePreferences();
  if (!live) return { words: texts.livePaused, tone: "neutral" };
  if (connection === "live") return { words: texts.live, tone: "good" };
  if (connection === "idle") return { words: texts.liveIdle, tone: "neutral" };
  if (connection === "reconnecting") return { words: texts.reconnecting, tone: "warn" };
  return { words: texts.connecting, tone: "neutral" };
}
