import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "wouter";
import { type Backlog, inQueues, type WaitingState } from "~/api/backlog";
import { type Living, useNewLetters, useOpenLetters, useVerdict } from "~/api/overview";
import { capital, count, number, plural, rate, span } from "~/lib/format";
import { Badge, Loading, Problem } from "~/ui";
import { ALIVE, flow, freshInWords, judged, living, oldestWaiting, toneOf, WORTH_TELLING } from "./health";
import { Tile } from "./Tile";
import styles from "./Tiles.module.css";

/** The numbers of now, the one that tells most first. Each leads to the list that it counts. */
export function Tiles({
  backlog,
  components,
}: {
  backlog: Backlog;
  components: UseQueryResult<Pick<Living, "items" | "as_of">>;
}) {
  return (
    <div className={styles.tiles}>
      <Oldest backlog={backlog} />
      <Waiting backlog={backlog} />
      <Speed backlog={backlog} />
      <Letters />
      <Alive components={components} />
    </div>
  );
}

function Oldest({ backlog }: { backlog: Backlog }) {
  const { data: verdict } = useVerdict();
  const waiting = oldestWaiting(backlog);
  const { tone, word } = judged(verdict, waiting);
  return (
    <Tile
      name="Oldest waiting"
      tone={tone}
      value={
        <Link href={`/messages?state=${waiting?.state ?? "pending"}`}>
          {waiting ? span(waiting.seconds) : "None"}
        </Link>
      }
      beside={waiting && <span className={styles.unit}>{waiting.state}</span>}
    >
      <Badge tone={tone}>{word}</Badge>
      {verdict && (
        <>
          <br />
          Late after {span(verdict.thresholds.late_after_seconds)}, overdue after{" "}
          {span(verdict.thresholds.overdue_after_seconds)}.
        </>
      )}
    </Tile>
  );
}

const OTHERS: readonly WaitingState[] = ["scheduled", "held", "stalled", "blocked", "retrying", "parked"];

function Waiting({ backlog }: { backlog: Backlog }) {
  const { states, drained_in_seconds: drained } = backlog;
  const others = OTHERS.filter((state) => states[state].value > 0);
  const queued = inQueues(backlog);
  return (
    <Tile
      name="Backlog"
      value={<Link href="/messages?state=pending">{count(states.pending)}</Link>}
      beside={<span className={styles.unit}>pending</span>}
    >
      {!backlog.complete && "A first estimate. "}
      {drained !== null && drained > WORTH_TELLING && `Sent in about ${span(drained)}. `}
      {others.map((state) => (
        <span key={state} className={styles.part}>
          <Link href={`/messages?state=${state}`}>
            {count(states[state])} {state}
          </Link>
        </span>
      ))}
      <Link href="/topology">
        {queued === undefined ? "Queues are not known" : `${number(queued)} in queues`}
      </Link>
    </Tile>
  );
}

function Speed({ backlog }: { backlog: Backlog }) {
  const { incoming, outgoing } = backlog.per_second;
  return (
    <Tile
      name="In and out"
      value={
        <span className={styles.speeds}>
          <Link href="/messages">
            {rate(incoming)} <span className={styles.unit}>in</span>
          </Link>
          <Link href="/components">
            {rate(outgoing)} <span className={styles.unit}>out</span>
          </Link>
        </span>
      }
    >
      {flow(backlog)}
    </Tile>
  );
}

function Letters() {
  const open = useOpenLetters();
  const fresh = useNewLetters();
  const { data: verdict } = useVerdict();
  if (!open.data) return <Waits name="Dead letters" error={open.error} />;
  return (
    <Tile
      name="Dead letters"
      tone={open.data.value > 0 ? toneOf(verdict, ["dead_letters"]) : "neutral"}
      value={<Link href="/dead-letters">{count(open.data)}</Link>}
      beside={<span className={styles.unit}>open</span>}
    >
      {fresh.data && (
        <Link href={`/dead-letters?failed_after=${encodeURIComponent(fresh.data.since)}`}>
          {capital(freshInWords(fresh.data.total))}
        </Link>
      )}
    </Tile>
  );
}

function Alive({ components }: { components: UseQueryResult<Pick<Living, "items" | "as_of">> }) {
  const { data: verdict } = useVerdict();
  if (!components.data) return <Waits name="Alive" error={components.error} />;
  const { items, as_of: asOf } = components.data;
  const within = verdict?.thresholds.lost_for_seconds ?? 0;
  const relays = living(items, "relay", asOf, within);
  const workers = living(items, "worker", asOf, within);
  const [late, lost] = [relays.late + workers.late, relays.lost + workers.lost];
  return (
    <Tile
      name="Alive"
      tone={toneOf(verdict, ALIVE)}
      value={
        <Link href="/components" className={styles.speeds ?? ""}>
          <span>
            {number(relays.alive)}{" "}
            <span className={styles.unit}>{relays.alive === 1 ? "relay" : "relays"}</span>
          </span>
          <span>
            {number(workers.alive)}{" "}
            <span className={styles.unit}>{workers.alive === 1 ? "worker" : "workers"}</span>
          </span>
        </Link>
      }
    >
      {missed(late, lost, within)}
    </Tile>
  );
}

function missed(late: number, lost: number, within: number): string {
  if (late + lost === 0) return "All have been heard of as often as they should.";
  const parts = [
    late > 0 && `${plural(late, "is", "are")} late`,
    lost > 0 && `${plural(lost, "was", "were")} lost in the last ${span(within)}`,
  ];
  return `${parts.filter(Boolean).join(", ")}.`;
}

function Waits({ name, error }: { name: string; error: Error | null }) {
  return (
    <Tile name={name} value={null}>
      {error ? <Problem of={error} /> : <Loading lines={2} />}
    </Tile>
  );
}
