import { useRef } from "react";
import type { Page } from "~/api/dead-letters";
import { number, plural } from "~/lib/format";
import { Icon } from "~/ui";
import styles from "./Standing.module.css";

/** What the list does not have: dead letters that the broker still holds, and what could not be asked. */
export function Standing({ page }: { page: Page | undefined }) {
  const unarchived = useLasting(page?.unarchived);
  if (!page) return null;
  const { degraded } = page;
  return (
    <>
      {degraded.length > 0 && (
        <p className={styles.note} data-tone="warn">
          <Icon name="lost" />
          <span>
            {degraded.map(nameOf).join(" and ")} could not be asked. What is listed here is right; how many
            dead letters {degraded.includes("broker") ? "the broker still holds" : "there are besides"} is not
            known.
          </span>
        </p>
      )}
      {unarchived && (
        <p className={styles.note} data-tone="info">
          <Icon name="info" />
          <span>
            <strong>{plural(unarchived.count, "more dead letter")}</strong> still {verb(unarchived.count)} at
            the broker and {unarchived.count === 1 ? "is" : "are"} in no list yet: {queues(unarchived.queues)}
            . An archiver brings them here; if the number stays, look whether one is alive.
          </span>
        </p>
      )}
    </>
  );
}

/** What an archiver is about to take is in the list before the broker is asked again: only what lay there twice is told. */
function useLasting(found: Page["unarchived"] | undefined) {
  const first = useRef<string>(undefined);
  if (!found || found.count === 0) first.current = undefined;
  else first.current ??= found.as_of;
  return found && first.current !== undefined && found.as_of > first.current ? found : undefined;
}

function verb(count: number): string {
  return count === 1 ? "lies" : "lie";
}

function nameOf(part: string): string {
  if (part === "broker") return "The broker";
  return part === "database" ? "The database" : part;
}

function queues(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([queue, count]) => `${queue} (${number(count)})`)
    .join(", ");
}
