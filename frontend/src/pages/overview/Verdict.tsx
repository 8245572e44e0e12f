import { Link } from "wouter";
import type { Backlog } from "~/api/backlog";
import { type Living, lastSentAt, useNewLetters, useOpenLetters } from "~/api/overview";
import { useStatistics } from "~/api/statistics";
import { Icon } from "~/ui";
import { isIdle, lastSent, lastSentByMinutes, troubles } from "./health";
import styles from "./Verdict.module.css";

/** One look: what is wrong, or that nothing is. */
export function Verdict({ backlog, living }: { backlog: Backlog; living: Living | undefined }) {
  const open = useOpenLetters().data;
  const fresh = useNewLetters().data?.total;
  const found = troubles(backlog, living?.items, { open, fresh });
  if (found.length === 0) return <Well backlog={backlog} living={living} isSure={open !== undefined} />;
  return (
    <ul className={styles.troubles} aria-label="What is wrong">
      {found.map(({ tone, text, href }) => (
        <li key={text} data-tone={tone}>
          <Icon name={tone === "bad" ? "dead" : "clock"} />
          <Link href={href}>{text}</Link>
        </li>
      ))}
    </ul>
  );
}

function Well({
  backlog,
  living,
  isSure,
}: {
  backlog: Backlog;
  living: Living | undefined;
  /** It is known that nothing has died, either. */
  isSure: boolean;
}) {
  const at = living && lastSentAt(living.items);
  return (
    <p className={styles.well} data-sure={isSure || undefined}>
      <Icon name={isSure ? "check" : "info"} />
      <span>
        {isIdle(backlog) ? "Nothing pending." : "Messages are on their way, all in time."}{" "}
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
