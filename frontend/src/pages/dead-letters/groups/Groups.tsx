import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { deadLetterGroups, type Filters, type Group, type GroupedBy } from "~/api/dead-letters";
import { useFallbackInterval } from "~/api/live";
import { useWhyNot } from "~/api/session";
import { number, plural } from "~/lib/format";
import { useHeld } from "~/lib/held";
import { RepairDialog } from "~/pages/repairs";
import { Ago, Button, Loaded, Loading } from "~/ui";
import { Sparkline } from "~/ui/charts/Sparkline";
import { Head } from "../Head";
import { Nothing } from "../list/Nothing";
import type { Place } from "../parameters";
import styles from "./Groups.module.css";
import { NoteOf } from "./Note";

export interface GroupsProps {
  filters: Filters;
  by: GroupedBy;
  onNarrow(changes: Partial<Place>): void;
}

/** What failed alike, the largest group first. */
export function Groups({ filters, by, onNarrow }: GroupsProps) {
  const query = useQuery({ ...deadLetterGroups(filters, by), refetchInterval: useFallbackInterval() });
  const asked = JSON.stringify([filters, by]);
  const held = useHeld(query.data?.items, query.data?.scope ?? asked, idOf);
  const [requeued, setRequeued] = useState<Group>();
  return (
    <Loaded query={query} loading={<Loading lines={6} />}>
      {(groups) => (
        <div className={styles.groups} aria-busy={groups.scope !== asked}>
          <Head
            age={
              <>
                counted <Ago at={groups.as_of} />
              </>
            }
          >
            <strong>{plural(held.items.length, "group")}</strong>
            {groups.truncated && <span>Only the largest are shown: narrow the filter to see others.</span>}
            {held.fresh > 0 && (
              <Button icon="operations" onClick={held.show}>
                {number(held.fresh)} new, show
              </Button>
            )}
          </Head>
          {held.items.length === 0 ? (
            <Nothing filters={filters} />
          ) : (
            <ul>
              {held.items.map((group) => (
                <Line key={group.id} group={group} onNarrow={onNarrow} onRequeue={() => setRequeued(group)} />
              ))}
            </ul>
          )}
          {requeued && (
            <RepairDialog
              action="requeue"
              selector={{ filter: { ...filters, ...narrowTo(requeued), status: "open" } }}
              describe={`the open dead letters of the group “${requeued.title}”`}
              onClose={() => setRequeued(undefined)}
            />
          )}
        </div>
      )}
    </Loaded>
  );
}

function Line({
  group,
  onNarrow,
  onRequeue,
}: {
  group: Group;
  onNarrow: GroupsProps["onNarrow"];
  onRequeue(): void;
}) {
  const may = useWhyNot("repair");
  return (
    <li className={styles.group}>
      <div className={styles.what}>
        <button
          type="button"
          className={styles.title}
          onClick={() => onNarrow({ ...narrowTo(group), view: "messages", cursor: undefined })}
        >
          {group.title || "On the way to any queue"}
        </button>
        <Since group={group} />
        <NoteOf group={group} />
      </div>
      <div className={styles.trend}>
        <Sparkline values={group.sparkline} label={trend(group.sparkline)} />
        <span className="quiet">last 24 hours</span>
      </div>
      <div className={styles.count}>
        <strong>{number(group.count)}</strong>
        {group.open !== group.count && <span className="quiet">{number(group.open)} open</span>}
      </div>
      <Button
        icon="operations"
        whyNot={may ?? (group.open === 0 ? "None of them is open." : undefined)}
        onClick={onRequeue}
      >
        Requeue
        <span className="unseen"> the group {group.title}</span>
      </Button>
    </li>
  );
}

function Since({ group }: { group: Group }) {
  return (
    <p className="quiet">
      first <Ago at={group.first_seen} /> · last <Ago at={group.last_seen} /> ·{" "}
      {group.last_requeued_at === null ? (
        "never requeued"
      ) : (
        <>
          requeued <Ago at={group.last_requeued_at} />,{" "}
          {group.since_requeue === 0 ? (
            "none died since"
          ) : (
            <strong className={styles.again}>{number(group.since_requeue)} died since</strong>
          )}
        </>
      )}
    </p>
  );
}

/** The filter that means this group. */
function narrowTo({ by, id }: Group): Partial<Filters> & Partial<Place> {
  if (id === "") return { source: "relay" };
  if (by === "queue") return { queue: id };
  return by === "routing_key" ? { routing_key: id } : { group_id: id };
}

function trend(deaths: readonly number[]): string {
  const all = deaths.reduce((sum, one) => sum + one, 0);
  if (all === 0) return "None died in the last 24 hours";
  return `${number(all)} died in the last 24 hours, ${number(deaths.at(-1) ?? 0)} of them in this one`;
}

function idOf({ by, id }: Group): string {
  return `${by} ${id}`;
}
