import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import type { Pause } from "~/api/overview";
import * as texts from "~/texts/overview";
import { Ago, Icon, Moment } from "~/ui";
import styles from "./Banners.module.css";

/** Banners about pauses and unavailable servers, which affect everything below. */
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
          <strong>{texts.databaseDown}</strong> {texts.shownFrom} <Ago at={backlog.as_of} />.
        </Banner>
      )}
      {backlog?.degraded.includes("broker") && (
        <Banner tone="bad">
          <strong>{texts.brokerDown}</strong> {texts.brokerDownHint(backlog.broker_error?.message ?? null)}
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
      <strong>{pauseTitle(pause)}</strong> {pause.requested_by ? texts.pausedBy(pause.requested_by) : ""}
      <Ago at={pause.requested_at} />
      {pause.reason ? `: ${asSentence(pause.reason)}` : "."} {STATES[pause.state]}{" "}
      {pause.expires_at && (
        <>
          {texts.endsAt} <Moment at={pause.expires_at} short />.
        </>
      )}{" "}
      <Link href="/components">{texts.showPauses}</Link>
    </>
  );
}

const STATES: Record<Pause["state"], string> = {
  applied: texts.pauseApplied,
  pending: texts.pausePending,
  unmet: texts.pauseUnmet,
};

export function pauseTitle({ scope, name }: Pick<Pause, "scope" | "name">): string {
  if (scope === "queue") return texts.queuePaused(name);
  return name ? texts.onePaused(scope, name) : texts.allPaused(scope);
}

function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
