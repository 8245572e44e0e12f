import { useState } from "react";
import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import { type Finding, type LiveComponents, lastSentAt, useVerdict } from "~/api/overview";
import { useStatistics } from "~/api/statistics";
import * as texts from "~/texts/overview";
import { Ago, Button, Icon, Problem } from "~/ui";
import { findingAddress, isIdle, lastSent, lastSentByMinutes } from "./health";
import styles from "./Verdict.module.css";

/** Findings of a kind that are listed at first: fifty late queues must not push a missing relay out of sight. */
const SHOWN_OF_KIND = 3;

/** The server's findings, or an all-clear. Pauses are shown in banners instead. */
export function Verdict({
  backlog,
  components,
}: {
  backlog: Backlog;
  components: LiveComponents | undefined;
}) {
  const { data: verdict, error } = useVerdict();
  if (error && !verdict) return <Problem of={error} />;
  if (!verdict || verdict.status === "ok") {
    return <Healthy backlog={backlog} components={components} isSure={verdict !== undefined && !error} />;
  }
  const kinds = new Map<string, Finding[]>();
  for (const finding of verdict.findings) {
    if (finding.code === "paused") continue;
    const kind = `${finding.severity} ${finding.code}`;
    const known = kinds.get(kind);
    if (known) known.push(finding);
    else kinds.set(kind, [finding]);
  }
  return (
    <ul className={styles.findings} aria-label={texts.problems}>
      {[...kinds].map(([kind, findings]) => (
        <OfKind key={kind} findings={findings} />
      ))}
    </ul>
  );
}

/** Findings with the same code and severity: the first ones, and all of them on request. */
function OfKind({ findings }: { findings: readonly Finding[] }) {
  const [showsAll, setShowsAll] = useState(false);
  const hidden = findings.length - SHOWN_OF_KIND;
  // A button in place of one finding would save no room.
  const isLong = hidden > 1;
  return (
    <>
      {(isLong && !showsAll ? findings.slice(0, SHOWN_OF_KIND) : findings).map((finding) => (
        <FindingItem key={`${finding.subject_kind} ${finding.subject}`} finding={finding} />
      ))}
      {isLong && (
        <li>
          <Button
            look="quiet"
            icon={showsAll ? "up" : "down"}
            aria-expanded={showsAll}
            onClick={() => setShowsAll(!showsAll)}
          >
            {showsAll ? texts.showFewerFindings : texts.showMoreFindings(hidden)}
          </Button>
        </li>
      )}
    </>
  );
}

function FindingItem({ finding }: { finding: Finding }) {
  const { severity, summary, hint, started_at: since } = finding;
  return (
    <li data-tone={severity === "error" ? "bad" : "warn"}>
      <Icon name={severity === "error" ? "dead" : "clock"} />
      <span>
        <Link href={findingAddress(finding)} title={hint}>
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

function Healthy({
  backlog,
  components,
  isSure,
}: {
  backlog: Backlog;
  components: LiveComponents | undefined;
  /** Whether the server confirms this now. An earlier verdict does not count while it is unreachable. */
  isSure: boolean;
}) {
  const at = components && lastSentAt(components.items);
  return (
    <p className={styles.healthy} data-sure={isSure || undefined}>
      <Icon name={isSure ? "check" : "info"} />
      <span>
        {isSure && (isIdle(backlog) ? texts.nothingPending : texts.allOnSchedule)}
        {at !== undefined && lastSent(at, components?.as_of ?? at)}
        {components && at === undefined && <SentByMinutes />}
      </span>
    </p>
  );
}

/** When the last message was sent, from the statistics. Relays that have just started do not know what others sent before. */
function SentByMinutes() {
  const { data } = useStatistics({ from: "-1h", to: "now" });
  return data ? lastSentByMinutes(data) : null;
}
