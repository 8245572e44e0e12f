import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import { type Finding, type LiveComponents, lastSentAt, useVerdict } from "~/api/overview";
import { useStatistics } from "~/api/statistics";
import * as texts from "~/texts/overview";
import { Ago, Icon, Problem } from "~/ui";
import { isIdle, lastSent, lastSentByMinutes, whereOf } from "./health";
import styles from "./Verdict.module.css";

/** What the server found wrong, or that nothing is. Pauses are told above, with who asked for them. */
export function Verdict({ backlog, living }: { backlog: Backlog; living: LiveComponents | undefined }) {
  const { data: verdict, error } = useVerdict();
  if (error && !verdict) return <Problem of={error} />;
  if (!verdict || verdict.status === "ok") {
    return <Well backlog={backlog} living={living} isSure={verdict !== undefined && !error} />;
  }
  const found = verdict.findings.filter(({ code }) => code !== "paused");
  return (
    <ul className={styles.troubles} aria-label={texts.problems}>
      {found.map((finding) => (
        <Found key={`${finding.code} ${finding.subject_kind} ${finding.subject}`} finding={finding} />
      ))}
    </ul>
  );
}

function Found({ finding }: { finding: Finding }) {
  const { severity, summary, hint, started_at: since } = finding;
  return (
    <li data-tone={severity === "error" ? "bad" : "warn"}>
      <Icon name={severity === "error" ? "dead" : "clock"} />
      <span>
        <Link href={whereOf(finding)} title={hint}>
          {summary.charAt(0).toUpperCase() + summary.slice(1)}
        </Link>
        {since && (
          <span className="quiet">
            {" "}
            {texts.since} <Ago at={since} />
          </span>
        )}
      </span>
    </li>
  );
}

function Well({
  backlog,
  living,
  isSure,
}: {
  backlog: Backlog;
  living: LiveComponents | undefined;
  /** The server judges so now; what it said before it was lost counts no longer. */
  isSure: boolean;
}) {
  const at = living && lastSentAt(living.items);
  return (
    <p className={styles.well} data-sure={isSure || undefined}>
      <Icon name={isSure ? "check" : "info"} />
      <span>
        {isSure && (isIdle(backlog) ? texts.nothingPending : texts.allOnSchedule)}
        {at !== undefined && lastSent(at, living?.as_of ?? at)}
        {living && at === undefined && <SentByMinutes />}
      </span>
    </p>
  );
}

/** Relays that just started have not sent anything yet: what others sent is in the statistics. */
function SentByMinutes() {
  const { data } = useStatistics({ from: "-1h", to: "now" });
  return data ? lastSentByMinutes(data) : null;
}
