import { Link } from "wouter";
import type { Component } from "~/api/components";
import { nameOf } from "~/api/pauses";
import { capital, number, span } from "~/lib/format";
import * as texts from "~/texts/components";
import { Ago, Badge, Facts, Moment } from "~/ui";
import { wordOf } from "./activity";
import styles from "./Components.module.css";
import { Consumers } from "./Consumers";
import { type PauseActions, PauseButton } from "./PauseButton";

/** Everything that one component said of itself. */
export function Detail({ of, ...pausing }: PauseActions & { of: Component }) {
  const { doing: told } = of;
  return (
    <div className={styles.inside}>
      <div className={styles.columns}>
        <Facts
          of={[
            [texts.startedAt, <Moment key="" at={of.startedAt} />],
            [texts.lastHeartbeat, <Moment key="" at={of.seenAt} />],
            [texts.heartbeatEvery, span(of.everySeconds)],
            [texts.lastSent, told.lastSentAt && <Ago key="" at={told.lastSentAt} />],
            [texts.wakeUp, told.wakesBy],
            [texts.appliedPauses, of.holds.map((hold) => nameOf(hold)).join(", ")],
          ]}
        />
        <Facts
          of={[
            [texts.inFlight, told.inHand === undefined ? undefined : number(told.inHand)],
            [texts.unsentLabel, told.unsent === undefined ? undefined : number(told.unsent)],
            ...Object.entries(told.totals).map(
              ([name, total]) => [texts.sinceStart(capital(wordOf(name))), number(total)] as const,
            ),
          ]}
        />
      </div>
      {Object.entries(told.waitingFor).map(([what, why]) => (
        <p key={what} className={styles.wrong}>
          <Badge tone="warn">{texts.waitingFor(what)}</Badge> {why}
        </p>
      ))}
      {told.lastError && (
        <div className={styles.error}>
          <h3>{texts.lastError}</h3>
          <p>
            <Moment at={told.lastError.at} short />
            {texts.aboutQueue(told.lastError.about)}
          </p>
          <pre>{told.lastError.text}</pre>
          {of.kind === "worker" && (
            <Link href={`/dead-letters?${new URLSearchParams({ queue: told.lastError.about })}`}>
              {texts.deadLettersOf(told.lastError.about)}
            </Link>
          )}
        </div>
      )}
      {of.kind === "worker" && <Consumers of={of} {...pausing} />}
      {(of.kind === "relay" || of.kind === "worker") && of.condition !== "stopped" && (
        <PauseButton target={{ scope: of.kind, name: of.name }} {...pausing} />
      )}
    </div>
  );
}
