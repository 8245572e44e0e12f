import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useDeferredValue, useState } from "react";
import { Link } from "wouter";
import {
  deadLetterGroups,
  type Filters,
  type Group,
  type GroupedBy,
  type GroupStatus,
} from "~/api/dead-letters";
import { useFallbackInterval } from "~/api/live";
import { useWhyNot } from "~/api/session";
import { number } from "~/lib/format";
import { useStableList } from "~/lib/stable-list";
import { groupAddress } from "~/lib/url-state";
import { RepairDialog } from "~/pages/repairs";
import * as texts from "~/texts/dead-letters";
import { Ago, Button, Loaded, Loading, State } from "~/ui";
import { Sparkline } from "~/ui/charts/Sparkline";
import { ListHeader } from "../ListHeader";
import { EmptyList } from "../list/EmptyList";
import type { UrlState } from "../parameters";
import styles from "./Groups.module.css";
import { NoteOf } from "./Note";

export interface GroupsProps {
  filters: Filters;
  by: GroupedBy;
  status: UrlState["group_status"];
  onNarrow(changes: Partial<UrlState>): void;
}

/** Dead letters by group, largest group first. */
export function Groups({ filters, by, status, onNarrow }: GroupsProps) {
  const statuses = by === "fingerprint" ? STATUSES[status] : undefined;
  const query = useQuery({
    ...deadLetterGroups(filters, by, statuses),
    refetchInterval: useFallbackInterval(),
  });
  const requestedScope = JSON.stringify([filters, by, statuses]);
  const stable = useStableList(query.data?.items, query.data?.scope ?? requestedScope, idOf);
  const [requeued, setRequeued] = useState<Group>();
  return (
    <Loaded query={query} loading={<Loading lines={6} />}>
      {(groups) => (
        <div className={styles.groups} aria-busy={groups.scope !== requestedScope}>
          <ListHeader
            age={
              <>
                {texts.counted} <Ago at={groups.as_of} />
              </>
            }
          >
            <strong>{texts.groupsCount(stable.items.length)}</strong>
            {groups.truncated && <span>{texts.largestOnly}</span>}
            {stable.fresh > 0 && (
              <Button icon="operations" onClick={stable.show}>
                {texts.freshGroups(stable.fresh)}
              </Button>
            )}
          </ListHeader>
          {stable.items.length === 0 ? (
            <EmptyList filters={filters} />
          ) : (
            <GroupList groups={stable.items} onNarrow={onNarrow} onRequeue={setRequeued} />
          )}
          {requeued && (
            <RepairDialog
              action="requeue"
              selector={{ filter: { ...filters, ...filterOf(requeued), status: "open" } }}
              describe={texts.openOfGroup(requeued.title)}
              onClose={() => setRequeued(undefined)}
            />
          )}
        </div>
      )}
    </Loaded>
  );
}

const STATUSES: Record<UrlState["group_status"], readonly GroupStatus[] | undefined> = {
  active: ["open", "reopened"],
  fixed: ["fixed"],
  muted: ["muted"],
  any: undefined,
};

const NO_GROUPS: readonly Group[] = [];

/** Renders the groups deferred, because fifty of them take about 100 ms and would block input. */
function GroupList({
  groups,
  onNarrow,
  onRequeue,
}: {
  groups: readonly Group[];
  onNarrow: GroupsProps["onNarrow"];
  onRequeue(group: Group): void;
}) {
  return (
    <ul>
      {useDeferredValue(groups, NO_GROUPS).map((group) => (
        <GroupItem key={group.id} group={group} onNarrow={onNarrow} onRequeue={() => onRequeue(group)} />
      ))}
    </ul>
  );
}

function GroupItem({
  group,
  onNarrow,
  onRequeue,
}: {
  group: Group;
  onNarrow: GroupsProps["onNarrow"];
  onRequeue(): void;
}) {
  const denied = useWhyNot("repair");
  return (
    <li className={styles.group}>
      <div className={styles.what}>
        <Title group={group} onNarrow={onNarrow} />
        <GroupFacts of={group} />
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
        whyNot={denied ?? (group.open_count === 0 ? texts.noneOpen : undefined)}
        onClick={onRequeue}
      >
        {texts.requeue}
        <span className="unseen"> {texts.theGroup(group.title)}</span>
      </Button>
    </li>
  );
}

/** Links to the page of a failure group. Other groups have no page, and filter the list instead. */
function Title({ group, onNarrow }: { group: Group; onNarrow: GroupsProps["onNarrow"] }) {
  if (group.by === "fingerprint") {
    return (
      <Link href={groupAddress(group.id)} className={styles.title ?? ""}>
        {group.title}
      </Link>
    );
  }
  return (
    <button
      type="button"
      className={styles.title}
      onClick={() => onNarrow({ ...filterOf(group), view: "messages", cursor: undefined })}
    >
      {group.title || texts.anyQueue}
    </button>
  );
}

/** Status, mark, queue, handlers and versions of a group. */
function GroupFacts({ of: { by, status, mark, queue, handlers, versions } }: { of: Group }) {
  if (by !== "fingerprint") return null;
  const parts: readonly [string, ReactNode][] = [
    ["queue", queue || texts.anyQueue],
    ["handlers", handlers.join(", ")],
    ["versions", versions.length > 0 && texts.versions(versions.map((each) => each.service_version))],
  ];
  return (
    <p className={styles.where}>
      {status && status !== "open" && <State of={status} />}
      {mark && <MarkOf of={mark} />}
      {parts
        .filter(([, part]) => part)
        .map(([name, part]) => (
          <span key={name}>{part}</span>
        ))}
    </p>
  );
}

/** The mark of a group, who set it, and the failures since. */
export function MarkOf({ of: mark }: { of: NonNullable<Group["mark"]> }) {
  return (
    <span>
      {mark.muted_above === null ? texts.markedFixed(mark.fixed_in) : texts.markedMuted(mark.muted_above)}{" "}
      {mark.marked_at && (
        <>
          {texts.by(mark.marked_by ?? "")} <Ago at={mark.marked_at} />
        </>
      )}
      {mark.count_since > 0 && (
        <strong className={styles.again}>, {texts.failedSince(mark.count_since)}</strong>
      )}
    </span>
  );
}

export function Since({ group }: { group: Group }) {
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

/** Returns the filter that selects the group. */
function filterOf({ by, id }: Group): Partial<Filters> & Partial<UrlState> {
  if (id === "") return { source: "relay" };
  if (by === "queue") return { queue: id };
  return by === "routing_key" ? { routing_key: id } : { group_id: id };
}

export function trend(hourlyCounts: readonly number[]): string {
  const all = hourlyCounts.reduce((sum, one) => sum + one, 0);
  if (all === 0) return texts.noneInDay;
  return texts.failuresInDay(all, hourlyCounts.at(-1) ?? 0);
}

function idOf({ by, id }: Group): string {
  return `${by} ${id}`;
}
