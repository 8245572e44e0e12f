import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { failureOf } from "~/api/problems";
import { useNow } from "~/lib/clock";
import { age } from "~/lib/format";
import { prefer, usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/app";
import { Badge, IconButton, useLiveStatus } from "~/ui";
import styles from "./Shell.module.css";

/** Whether what one sees follows what happens, and how old it is. */
export function Live() {
  const status = useLiveStatus();
  const { at, isSilent } = useReads();
  const { words, tone } =
    isSilent && status.tone === "good" ? ({ words: texts.notResponding, tone: "warn" } as const) : status;
  const { live } = usePreferences();
  return (
    <span className={styles.live}>
      <Badge tone={tone} icon={tone === "warn" ? "lost" : live ? "play" : "pause"}>
        {words}
      </Badge>
      <ReadAge at={at} />
      <IconButton
        icon={live ? "pause" : "play"}
        label={live ? texts.pauseLive : texts.resumeLive}
        onClick={() => prefer({ live: !live })}
      />
    </span>
  );
}

function ReadAge({ at }: { at: number }) {
  const now = useNow();
  if (at === 0) return null;
  const words = age((now - at) / 1000);
  return (
    <span className={styles.age} title={texts.readAgo(words)}>
      {words}
      <span className="unseen"> {texts.sinceUpdate}</span>
    </span>
  );
}

/**
 * When something of what is on screen was last read, in milliseconds since the epoch, or 0; and whether requests for some of it
 * go unanswered, though the stream may be connected.
 */
function useReads(): { at: number; isSilent: boolean } {
  const queries = useQueryClient();
  const [at, setAt] = useState(0);
  const [isSilent, setSilent] = useState(false);
  useEffect(() => {
    const cache = queries.getQueryCache();
    const look = () => {
      const shown = cache.getAll().filter((query) => query.isActive() && query.queryKey[0] !== "session");
      setAt(Math.max(0, ...shown.map((query) => query.state.dataUpdatedAt)));
      setSilent(
        shown.some(({ state: { fetchFailureReason: why } }) => why !== null && failureOf(why).status === 0),
      );
    };
    look();
    return cache.subscribe((event) => event.type === "updated" && queueMicrotask(look));
  }, [queries]);
  return { at, isSilent };
}
