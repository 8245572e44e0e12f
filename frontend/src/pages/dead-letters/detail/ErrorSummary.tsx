import { Link } from "wouter";
import type { DeadLetter } from "~/api/dead-letter";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Ago, Icon } from "~/ui";
import styles from "./ErrorSummary.module.css";

/** A message of so many characters may scroll, and what scrolls has to be reachable by keyboard. */
const LONG = 300;

/** What failed, and what has been decided about it, before all else. */
export function ErrorSummary({ letter }: { letter: DeadLetter }) {
  return (
    <div className={styles.summary}>
      <p className={styles.error} tabIndex={letter.error.message.length > LONG ? 0 : undefined}>
        {letter.error.message || <span className="quiet">{texts.noErrorMessage}</span>}
      </p>
      <p className="quiet">
        {letter.reason === "exhausted" ? (
          <>
            {texts.retriesExhausted} <Ago at={letter.failed_at} />
          </>
        ) : (
          <>
            {SOURCES[letter.source]} <Ago at={letter.failed_at} /> ({letter.reason})
          </>
        )}
      </p>
      <Decision letter={letter} />
      {letter.operation_id !== null && (
        <p className={styles.note}>
          <Icon name="operations" />
          <span>
            <Link href={`/operations/${letter.operation_id}`}>{texts.operation(letter.operation_id)}</Link>{" "}
            {texts.operationClaims}
          </span>
        </p>
      )}
    </div>
  );
}

const SOURCES: Record<DeadLetter["source"], string> = {
  worker: texts.rejectedByWorker,
  relay: texts.parkedByRelay,
  broker: texts.removedByBroker,
};

function Decision({
  letter: { status, resolved_at, resolved_by, resolution_reason, requeues },
}: {
  letter: DeadLetter;
}) {
  if (status === "open" || resolved_at === null) return null;
  const fate = requeues.at(-1)?.outcome;
  return (
    <p className={styles.note}>
      <Icon name={status === "discarded" ? "trash" : "operations"} />
      <span>
        {texts.decidedBy(status === "discarded", resolved_by ?? common.unknownActor)} <Ago at={resolved_at} />
        {resolution_reason ? <>: “{resolution_reason}”.</> : "."}{" "}
        {status === "requeued" && fate && OUTCOMES[fate]}
      </span>
    </p>
  );
}

const OUTCOMES = {
  in_progress: texts.outcomeUnderWay,
  processed: texts.outcomeProcessed,
  failed_again: texts.outcomeFailedAgain,
  duplicate: texts.outcomeDuplicate,
};
