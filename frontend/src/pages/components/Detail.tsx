import { Link } from "wouter";
import type { Component } from "~/api/components";
import { nameOf, type Pause, type Scope, type Target } from "~/api/pauses";
import { useWhyNot } from "~/api/session";
import { capital, number, span } from "~/lib/format";
import { Ago, Badge, Button, Facts, Moment } from "~/ui";
import styles from "./Components.module.css";
import { Consumers } from "./Consumers";
import { wordOf } from "./doing";

/** What is paused, and how that changes. */
export interface Pausing {
  pauses: readonly Pause[];
  onPause(target: Target): void;
  onResume(pause: Pause): void;
}

/** Everything that one component said of itself. */
export function Detail({ of, ...pausing }: Pausing & { of: Component }) {
  const { doing: told } = of;
  return (
    <div className={styles.inside}>
      <div className={styles.columns}>
        <Facts
          of={[
            ["Started", <Moment key="" at={of.startedAt} />],
            ["Last sign of life", <Moment key="" at={of.seenAt} />],
            ["Gives one every", span(of.everySeconds)],
            ["Sent last", told.lastSentAt && <Ago key="" at={told.lastSentAt} />],
            ["Wakes by", told.wakesBy],
            ["Honours", of.holds.map((hold) => `the pause of ${nameOf(hold)}`).join(", ")],
          ]}
        />
        <Facts
          of={[
            ["In hand", told.inHand === undefined ? undefined : number(told.inHand)],
            ["Unsent", told.unsent === undefined ? undefined : number(told.unsent)],
            ...Object.entries(told.totals).map(
              ([name, total]) => [`${capital(wordOf(name))} since its start`, number(total)] as const,
            ),
          ]}
        />
      </div>
      {Object.entries(told.waitingFor).map(([what, why]) => (
        <p key={what} className={styles.wrong}>
          <Badge tone="warn">waits for the {what}</Badge> {why}
        </p>
      ))}
      {told.lastError && (
        <div className={styles.error}>
          <h3>Last error</h3>
          <p>
            <Moment at={told.lastError.at} short />, about {told.lastError.about}
          </p>
          <pre>{told.lastError.text}</pre>
          {of.kind === "worker" && (
            <Link href={`/dead-letters?${new URLSearchParams({ queue: told.lastError.about })}`}>
              Dead letters of {told.lastError.about}
            </Link>
          )}
        </div>
      )}
      {of.kind === "worker" && <Consumers of={of} {...pausing} />}
      {(of.kind === "relay" || of.kind === "worker") && of.condition !== "stopped" && (
        <Turn target={{ scope: of.kind, name: of.name }} {...pausing} />
      )}
    </div>
  );
}

/** Pauses, or resumes what is paused. */
export function Turn({
  target,
  pauses,
  onPause,
  onResume,
}: Pausing & { target: { scope: Scope; name: string } }) {
  const whyNot = useWhyNot("pause");
  const paused = pauses.find(({ scope, name }) => scope === target.scope && name === target.name);
  return (
    <span>
      <Button
        icon={paused ? "play" : "pause"}
        whyNot={whyNot}
        aria-label={`${paused ? "Resume" : "Pause"} ${nameOf(target)}`}
        onClick={() => (paused ? onResume(paused) : onPause(target))}
      >
        {paused ? "Resume" : "Pause"} {target.scope === "queue" ? "" : target.scope}
      </Button>
    </span>
  );
}
