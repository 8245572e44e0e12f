import { Link } from "wouter";
import type { Component } from "~/api/components";
import { describeTarget } from "~/api/pauses";
import { capitalize, number, span } from "~/lib/format";
import * as texts from "~/texts/components";
import { Ago, Badge, Facts, Moment } from "~/ui";
import { countLabel } from "./activity";
import styles from "./Components.module.css";
import { Consumers } from "./Consumers";
import { type PauseActions, PauseButton } from "./PauseButton";

/** All that a component reports about itself. */
export function Detail({ of, ...pausing }: PauseActions & { of: Component }) {
  const { activity } = of;
  return (
    <div className={styles.inside}>
      <div className={styles.columns}>
        <Facts
          of={[
            [texts.startedAt, <Moment key="" at={of.startedAt} />],
            [texts.lastHeartbeat, <Moment key="" at={of.lastHeartbeatAt} />],
            [texts.heartbeatEvery, span(of.heartbeatIntervalSeconds)],
            [texts.lastSent, activity.lastSentAt && <Ago key="" at={activity.lastSentAt} />],
            [texts.destination, activity.destination],
            [texts.wakeUp, activity.wakesBy],
            [texts.appliedPauses, of.appliedPauses.map((pause) => describeTarget(pause)).join(", ")],
          ]}
        />
        <Facts
          of={[
            [texts.inFlight, activity.inFlight === undefined ? undefined : number(activity.inFlight)],
            [texts.unsentLabel, activity.unsent === undefined ? undefined : number(activity.unsent)],
            ...Object.entries(activity.totals).map(
              ([name, total]) => [texts.sinceStart(capitalize(countLabel(name))), number(total)] as const,
            ),
          ]}
        />
      </div>
      {Object.entries(activity.waitingFor).map(([what, why]) => (
        <p key={what} className={styles.wrong}>
          <Badge tone="warn">{texts.waitingFor(what)}</Badge> {why}
        </p>
      ))}
      {activity.lastFailure && (
        <div className={styles.error}>
          <h3>{texts.lastError}</h3>
          <p>
            <Moment at={activity.lastFailure.failed_at} short />
            {texts.aboutQueue(activity.lastFailure.subject)}
          </p>
          <pre>{activity.lastFailure.error.message}</pre>
          {of.kind === "worker" && (
            <Link href={`/dead-letters?${new URLSearchParams({ queue: activity.lastFailure.subject })}`}>
              {texts.deadLettersOf(activity.lastFailure.subject)}
            </Link>
          )}
        </div>
      )}
      {of.kind === "worker" && <Consumers of={of} {...pausing} />}
      {(of.kind === "relay" || of.kind === "worker") && of.status !== "stopped" && (
        <PauseButton target={{ scope: of.kind, name: of.name }} {...pausing} />
      )}
    </div>
  );
}
