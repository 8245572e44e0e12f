import { useRef } from "react";
import type { Page } from "~/api/dead-letters";
import { number } from "~/lib/format";
import * as texts from "~/texts/dead-letters";
import { Icon } from "~/ui";
import styles from "./ListNotices.module.css";

/** Notices about missing data: dead letters still at the broker, and services that did not respond. */
export function ListNotices({ page }: { page: Page | undefined }) {
  const unarchived = usePersisting(page?.unarchived);
  if (!page) return null;
  const { degraded } = page;
  return (
    <>
      {degraded.length > 0 && (
        <p className={styles.note} data-tone="warn">
          <Icon name="lost" />
          <span>{texts.unavailable(degraded.map(nameOf).join(" and "), degraded.includes("broker"))}</span>
        </p>
      )}
      {unarchived && (
        <p className={styles.note} data-tone="info">
          <Icon name="info" />
          <span>{texts.notArchived(unarchived.count, queues(unarchived.queues))}</span>
        </p>
      )}
    </>
  );
}

/** Returns the unarchived count once it is above zero in two counts, because an archiver takes new dead letters before the next count. */
function usePersisting(found: Page["unarchived"] | undefined) {
  const first = useRef<string>(undefined);
  if (!found || found.count === 0) first.current = undefined;
  else first.current ??= found.as_of;
  return found && first.current !== undefined && found.as_of > first.current ? found : undefined;
}

function nameOf(part: string): string {
  if (part === "broker") return texts.theBrokerName;
  return part === "database" ? texts.theDatabaseName : part;
}

function queues(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([queue, count]) => `${queue} (${number(count)})`)
    .join(", ");
}
