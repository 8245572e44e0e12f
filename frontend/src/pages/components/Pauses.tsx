import { Link } from "wouter";
import { describeTarget, type Pause } from "~/api/pauses";
import { useWhyNot } from "~/api/session";
import { capitalize } from "~/lib/format";
import * as common from "~/texts/common";
import * as texts from "~/texts/components";
import { Ago, Badge, Button, Panel } from "~/ui";
import styles from "./Components.module.css";

/** The current pauses, and which components have applied them. Renders nothing without pauses. */
export function Pauses({ pauses, onResume }: { pauses: readonly Pause[]; onResume(pause: Pause): void }) {
  const whyNot = useWhyNot("pause");
  if (pauses.length === 0) return null;
  return (
    <Panel title={texts.pausedCount(pauses.length)}>
      <ul className={styles.pauses}>
        {pauses.map((pause) => (
          <li key={`${pause.scope} ${pause.name}`} className={styles.pause}>
            <div className={styles.words}>
              <p>
                <strong>{capitalize(describeTarget(pause))}</strong> <Progress of={pause} />
              </p>
              {pause.reason && <p>{pause.reason}</p>}
              <p className={styles.quiet}>
                {texts.requestedBy(pause.requested_by ?? common.unknownActor)} <Ago at={pause.requested_at} />
                ,{" "}
                {pause.expires_at ? (
                  <>
                    {texts.endsAt} <Ago at={pause.expires_at} />
                  </>
                ) : (
                  texts.untilResumed
                )}
              </p>
              <AffectedComponents of={pause} />
            </div>
            <Button
              icon="play"
              whyNot={whyNot}
              aria-label={texts.resumeTarget(describeTarget(pause))}
              onClick={() => onResume(pause)}
            >
              {texts.resumeMore}
            </Button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Progress({ of }: { of: Pause }) {
  const applied = of.components.filter(({ state }) => state === "applied").length;
  if (of.state === "unmet") return <Badge icon="info">{texts.noneAffected}</Badge>;
  if (of.state === "applied") return <Badge tone="good">{texts.applied}</Badge>;
  return <Badge tone="warn">{texts.appliedBy(applied, of.components.length)}</Badge>;
}

const STATES = {
  applied: { tone: "good", words: texts.takesNothing },
  pending: { tone: "warn", words: texts.finishing },
  silent: { tone: "neutral", words: texts.silent },
} as const;

function AffectedComponents({ of }: { of: Pause }) {
  if (of.components.length === 0) return null;
  return (
    <ul className={styles.affected}>
      {of.components.map(({ id, name, state }) => (
        <li key={id}>
          <Link href={`/components?open=${id}`}>{name}</Link>{" "}
          <Badge tone={STATES[state].tone} {...(state === "silent" && { icon: "lost" as const })}>
            {STATES[state].words}
          </Badge>
        </li>
      ))}
    </ul>
  );
}
