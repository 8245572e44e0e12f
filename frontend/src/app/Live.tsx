import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { toFailure } from "~/api/problems";
import { useNow } from "~/lib/clock";
import { age } from "~/lib/format";
import { setPreferences, usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/app";
import { Badge, IconButton, useLiveStatus } from "~/ui";
import styles from "./Shell.module.css";

/** Status of live updates, and the age of the data shown. */
export function Live() {
  const status = useLiveStatus();
  const { at, isUnresponsive } = useLastUpdate();
  const { words, tone } =
    isUnresponsive && status.tone === "good"
      ? ({ words: texts.notResponding, tone: "warn" } as const)
      : status;
  const { live } = usePreferences();
  return (
    <span className={styles.live}>
      <Badge tone={tone} icon={tone === "warn" ? "lost" : live ? "play" : "pause"}>
        {words}
      </Badge>
      <UpdateAge at={at} />
      <IconButton
        icon={live ? "pause" : "play"}
        label={live ? texts.pauseLive : texts.resumeLive}
        onClick={() => setPreferences({ live: !live })}
      />
    </span>
  );
}

function UpdateAge({ at }: { at: number }) {
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
 * Time of the latest update of active queries, in milliseconds since the epoch, or 0; and whether any of their requests get no
 * response, which can happen while the stream is connected.
 */
function useLastUpdate(): { at: number; isUnresponsive: boolean } {
  const queries = useQueryClient();
  const [at, setAt] = useState(0);
  const [isUnresponsive, setUnresponsive] = useState(false);
  useEffect(() => {
    const cache = queries.getQueryCache();
    const update = () => {
      const active = cache.getAll().filter((query) => query.isActive() && query.queryKey[0] !== "session");
      setAt(Math.max(0, ...active.map((query) => query.state.dataUpdatedAt)));
      setUnresponsive(
        active.some(
          ({ state: { fetchFailureReason: reason } }) => reason !== null && toFailure(reason).status === 0,
        ),
      );
    };
    update();
    return cache.subscribe((event) => event.type === "updated" && queueMicrotask(update));
  }, [queries]);
  return { at, isUnresponsive };
}
