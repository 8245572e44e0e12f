import { Link } from "wouter";
import { nameOf, type Pause } from "~/api/pauses";
import { useWhyNot } from "~/api/session";
import { capital, plural } from "~/lib/format";
import { Ago, Badge, Button, Panel } from "~/ui";
import styles from "./Components.module.css";

/** What is paused, asked for against applied. Nothing is shown where nothing is. */
export function Pauses({ pauses, onResume }: { pauses: readonly Pause[]; onResume(pause: Pause): void }) {
  const whyNot = useWhyNot("pause");
  if (pauses.length === 0) return null;
  return (
    <Panel title={`Paused: ${plural(pauses.length, "pause")}`}>
      <ul className={styles.pauses}>
        {pauses.map((pause) => (
          <li key={`${pause.scope} ${pause.name}`} className={styles.pause}>
            <div className={styles.words}>
              <p>
                <strong>{capital(nameOf(pause))}</strong> <Progress of={pause} />
              </p>
              {pause.reason && <p>{pause.reason}</p>}
              <p className={styles.quiet}>
                asked for by {pause.requested_by ?? "somebody"} <Ago at={pause.requested_at} />,{" "}
                {pause.until ? (
                  <>
                    ends <Ago at={pause.until} />
                  </>
                ) : (
                  "until somebody resumes it"
                )}
              </p>
              <Concerned of={pause} />
            </div>
            <Button
              icon="play"
              whyNot={whyNot}
              aria-label={`Resume ${nameOf(pause)}`}
              onClick={() => onResume(pause)}
            >
              Resume …
            </Button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Progress({ of }: { of: Pause }) {
  const applied = of.components.filter(({ state }) => state === "applied").length;
  if (of.state === "unmet")
    return <Badge icon="info">nobody is concerned; it holds for whoever starts</Badge>;
  if (of.state === "applied") return <Badge tone="good">applied</Badge>;
  return (
    <Badge tone="warn">
      applied by {applied} of {of.components.length}
    </Badge>
  );
}

const STATES = {
  applied: { tone: "good", words: "takes nothing new" },
  pending: { tone: "warn", words: "finishes what is in hand" },
  silent: { tone: "neutral", words: "lost, cannot say" },
} as const;

function Concerned({ of }: { of: Pause }) {
  if (of.components.length === 0) return null;
  return (
    <ul className={styles.concerned}>
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
