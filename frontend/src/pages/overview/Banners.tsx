import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import type { Pause } from "~/api/overview";
import { Ago, Icon, Moment } from "~/ui";
import styles from "./Banners.module.css";

/** What is not as usual for everything below: pauses, and servers that do not answer. */
export function Banners({
  backlog,
  pauses = [],
}: {
  backlog: Backlog | undefined;
  pauses: readonly Pause[] | undefined;
}) {
  return (
    <>
      {backlog?.degraded.includes("database") && (
        <Banner tone="bad">
          <strong>The database does not answer.</strong> The numbers are the last that it gave,{" "}
          <Ago at={backlog.as_of} />.
        </Banner>
      )}
      {backlog?.degraded.includes("broker") && (
        <Banner tone="bad">
          <strong>The broker does not answer.</strong> What lies in its queues is not known.{" "}
          {backlog.broker_error}
        </Banner>
      )}
      {pauses.map((pause) => (
        <Banner key={`${pause.scope} ${pause.name}`} tone="warn">
          <Paused pause={pause} />
        </Banner>
      ))}
    </>
  );
}

function Banner({ tone, children }: { tone: "warn" | "bad"; children: React.ReactNode }) {
  return (
    <div className={styles.banner} data-tone={tone} role="note">
      <Icon name={tone === "warn" ? "pause" : "lost"} />
      <p>{children}</p>
    </div>
  );
}

function Paused({ pause }: { pause: Pause }) {
  return (
    <>
      <strong>{whatIsPaused(pause)}</strong> {pause.requested_by ? `by ${pause.requested_by}, ` : ""}
      <Ago at={pause.requested_at} />
      {pause.reason ? `: ${asSentence(pause.reason)}` : "."} {STATES[pause.state]}{" "}
      {pause.until && (
        <>
          It ends at <Moment at={pause.until} short />.
        </>
      )}{" "}
      <Link href="/components">See who is paused</Link>
    </>
  );
}

const STATES: Record<Pause["state"], string> = {
  applied: "What was in hand is done.",
  pending: "Something is still in hand.",
  unmet: "It concerns nobody who is alive, and holds for whoever starts.",
};

export function whatIsPaused({ scope, name }: Pick<Pause, "scope" | "name">): string {
  if (scope === "queue") return `The queue ${name} is paused`;
  return name ? `The ${scope} ${name} is paused` : `All ${scope}s are paused`;
}

function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
