import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { deadLetterGroups, type Filters, type Group, type GroupedBy } from "~/api/dead-letters";
import { useFallbackInterval } from "~/api/live";
import { useWhyNot } from "~/api/session";
import { number } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { RepairDialog } from "~/pages/repairs";
import * as texts from "~/texts/dead-letters";
import { Ago, Button, Loaded, Loading } from "~/ui";
import { Sparkline } from "~/ui/charts/Sparkline";
import { ListHeader } from "../ListHeader";
import { EmptyList } from "../list/EmptyList";
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
  const held = useStableList(query.data?.items, query.data?.scope ?? asked, idOf);
  const [requeued, setRequeued] = useState<Group>();
  return (
    <Loaded query={query} loading={<Loading lines={6} />}>
      {(groups) => (
        <div className={styles.groups} aria-busy={groups.scope !== asked}>
          <ListHeader
            age={
              <>
                {texts.counted} <Ago at={groups.as_of} />
              </>
            }
          >
            <strong>{texts.groupsCount(held.items.length)}</strong>
            {groups.truncated && <span>{texts.largestOnly}</span>}
            {held.fresh > 0 && (
              <Button icon="operations" onClick={held.show}>
                {texts.freshGroups(held.fresh)}
              </Button>
            )}
          </ListHeader>
          {held.items.length === 0 ? (
            <EmptyList filters={filters} />
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
              describe={texts.openOfGroup(requeued.title)}
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
          {group.title || texts.anyQueue}
        </button>
        <Since group={group} />
        <NoteOf group={group} />
      </div>
      <div className={styles.trend}>
        <Sparkline values={group.hourly_counts} label={trend(group.hourly_counts)} />
        <span className="quiet">{texts.last24Hours}</span>
      </div>
      <div className={styles.count}>
        <strong>{number(group.count)}</strong>
        {group.open_count !== group.count && (
          <span className="quiet">{texts.openCount(group.open_count)}</span>
        )}
      </div>
      <Button
        icon="operations"
        whyNot={may ?? (group.open_count === 0 ? texts.noneOpen : undefined)}
        onClick={onRequeue}
      >
        {texts.requeue}
        <span className="unseen"> {texts.theGroup(group.title)}</span>
      </Button>
    </li>
  );
}

function Since({ group }: { group: Group }) {
  return (
    <p className="quiet">
      {texts.first} <Ago at={group.first_seen_at} /> {texts.last} <Ago at={group.last_seen_at} /> ·{" "}
      {group.last_requeued_at === null ? (
        texts.neverRequeued
      ) : (
        <>
          {texts.requeuedAt} <Ago at={group.last_requeued_at} />,{" "}
          {group.count_since_requeue === 0 ? (
            texts.noneSince
          ) : (
            <strong className={styles.again}>{texts.failedSince(group.count_since_requeue)}</strong>
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
  if (all === 0) return texts.noneInDay;
  return texts.failuresInDay(all, deaths.at(-1) ?? 0);
}

function idOf({ by, id }: Group): string {
  return `${by} ${id}`;
}
