import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "wouter";
import { type Backlog, countInQueues, type WaitingState } from "~/api/backlog";
import { type LiveComponents, useNewDeadLetters, useOpenDeadLetters, useVerdict } from "~/api/overview";
import { capitalize, count, number, rate, span } from "~/lib/format";
import * as texts from "~/texts/overview";
import { Badge, Loading, Problem } from "~/ui";
import {
  COMPONENT_FINDINGS,
  countAlive,
  flow,
  MIN_BACKLOG_SECONDS,
  newInLastHour,
  oldestWaiting,
  toneOf,
  waitingStatus,
} from "./health";
import { Tile } from "./Tile";
import styles from "./Tiles.module.css";

/** Current key figures, most important first. Each links to the list that it counts. */
export function Tiles({
  backlog,
  components,
}: {
  backlog: Backlog;
  components: UseQueryResult<Pick<LiveComponents, "items" | "as_of">>;
}) {
  return (
    <div className={styles.tiles}>
      <OldestTile backlog={backlog} />
      <BacklogTile backlog={backlog} />
      <ThroughputTile backlog={backlog} />
      <DeadLettersTile />
      <ComponentsTile components={components} />
    </div>
  );
}

function OldestTile({ backlog }: { backlog: Backlog }) {
  const { data: verdict } = useVerdict();
  const waiting = oldestWaiting(backlog);
  const { tone, word } = waitingStatus(verdict, waiting);
  return (
    <Tile
      name={texts.oldestWaiting}
      tone={tone}
      value={
        <Link href={`/messages?state=${waiting?.state ?? "pending"}`}>
          {waiting ? (waiting.seconds === null ? texts.ageUnknown : span(waiting.seconds)) : texts.none}
        </Link>
      }
      aside={waiting && <span className={styles.unit}>{waiting.state}</span>}
    >
      <Badge tone={tone}>{word}</Badge>
      {verdict && (!waiting || waiting.state === "pending") && (
        <>
          <br />
          {texts.thresholds(
            span(verdict.thresholds.late_after_seconds),
            span(verdict.thresholds.overdue_after_seconds),
          )}
        </>
      )}
    </Tile>
  );
}

const OTHER_STATES: readonly WaitingState[] = [
  "scheduled",
  "held",
  "stalled",
  "blocked",
  "retrying",
  "parked",
];

function BacklogTile({ backlog }: { backlog: Backlog }) {
  const { states, drained_in_seconds: drained } = backlog;
  const others = OTHER_STATES.filter((state) => states[state].value > 0);
  const queued = countInQueues(backlog);
  return (
    <Tile
      name={texts.backlog}
      value={<Link href="/messages?state=pending">{count(states.pending)}</Link>}
      aside={<span className={styles.unit}>{texts.pending}</span>}
    >
      {!backlog.complete && texts.estimate}
      {drained !== null && drained > MIN_BACKLOG_SECONDS && texts.sentIn(span(drained))}
      {others.map((state) => (
        <span key={state} className={styles.part}>
          <Link href={`/messages?state=${state}`}>
            {count(states[state])} {state}
          </Link>
        </span>
      ))}
      <Link href="/queues">{queued === undefined ? texts.queuesUnknown : texts.countInQueues(queued)}</Link>
    </Tile>
  );
}

function ThroughputTile({ backlog }: { backlog: Backlog }) {
  const { incoming, outgoing } = backlog.per_second;
  return (
    <Tile
      name={texts.inAndOut}
      value={
        <span className={styles.speeds}>
          <Link href="/messages">
            {rate(incoming)} <span className={styles.unit}>{texts.inUnit}</span>
          </Link>
          <Link href="/components">
            {rate(outgoing)} <span className={styles.unit}>{texts.outUnit}</span>
          </Link>
        </span>
      }
    >
      {flow(backlog)}
    </Tile>
  );
}

function DeadLettersTile() {
  const open = useOpenDeadLetters();
  const fresh = useNewDeadLetters();
  const { data: verdict } = useVerdict();
  if (!open.data) return <LoadingTile name={texts.deadLetters} error={open.error} />;
  return (
    <Tile
      name={texts.deadLetters}
      tone={open.data.value > 0 ? toneOf(verdict, ["dead_letters"]) : "neutral"}
      value={<Link href="/dead-letters">{count(open.data)}</Link>}
      aside={<span className={styles.unit}>{texts.open}</span>}
    >
      {fresh.data && (
        <Link href={`/dead-letters?view=messages&failed_after=${encodeURIComponent(fresh.data.since)}`}>
          {capitalize(newInLastHour(fresh.data.total))}
        </Link>
      )}
    </Tile>
  );
}

function ComponentsTile({
  components,
}: {
  components: UseQueryResult<Pick<LiveComponents, "items" | "as_of">>;
}) {
  const { data: verdict } = useVerdict();
  if (!components.data) return <LoadingTile name={texts.components} error={components.error} />;
  const { items, as_of: asOf } = components.data;
  const within = verdict?.thresholds.lost_for_seconds ?? 0;
  const relays = countAlive(items, "relay", asOf, within);
  const workers = countAlive(items, "worker", asOf, within);
  const [late, lost] = [relays.late + workers.late, relays.lost + workers.lost];
  return (
    <Tile
      name={texts.components}
      tone={toneOf(verdict, COMPONENT_FINDINGS)}
      value={
        <Link href="/components" className={styles.speeds ?? ""}>
          <span>
            {number(relays.alive)} <span className={styles.unit}>{texts.relays(relays.alive)}</span>
          </span>
          <span>
            {number(workers.alive)} <span className={styles.unit}>{texts.workers(workers.alive)}</span>
          </span>
        </Link>
      }
    >
      {heartbeatText(late, lost, within)}
    </Tile>
  );
}

function heartbeatText(late: number, lost: number, within: number): string {
  if (late + lost === 0) return texts.allOnTime;
  const parts = [late > 0 && texts.late(late), lost > 0 && texts.lost(lost, span(within))];
  return `${parts.filter(Boolean).join(", ")}.`;
}

function LoadingTile({ name, error }: { name: string; error: Error | null }) {
  return (
    <Tile name={name} value={null}>
      {error ? <Problem of={error} /> : <Loading lines={2} />}
    </Tile>
  );
}
