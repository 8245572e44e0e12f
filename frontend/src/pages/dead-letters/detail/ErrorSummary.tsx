import { Link } from "wouter";
import type { DeadLetter } from "~/api/dead-letter";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Ago, Icon } from "~/ui";
import styles from "./ErrorSummary.module.css";

/** Messages longer than this may scroll, and scrollable text has to be reachable by keyboard. */
const LONG = 300;

/** The error, and the decision about it, if any. */
export function ErrorSummary({ deadLetter }: { deadLetter: DeadLetter }) {
  return (
    <div className={styles.summary}>
      <p className={styles.error} tabIndex={deadLetter.error.message.length > LONG ? 0 : undefined}>
        {deadLetter.error.message || <span className="quiet">{texts.noErrorMessage}</span>}
      </p>
      <p className="quiet">
        {deadLetter.reason === "exhausted" ? (
          <>
            {texts.retriesExhausted} <Ago at={deadLetter.failed_at} />
          </>
        ) : (
          <>
            {SOURCES[deadLetter.source]} <Ago at={deadLetter.failed_at} /> ({deadLetter.reason})
          </>
        )}
      </p>
      <Decision deadLetter={deadLetter} />
      {deadLetter.operation_id !== null && (
        <p className={styles.note}>
          <Icon name="operations" />
          <span>
            <Link href={`/operations/${deadLetter.operation_id}`}>
              {texts.operation(deadLetter.operation_id)}
            </Link>{" "}
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
  deadLetter: { status, resolved_at, resolved_by, resolution_reason, requeues },
}: {
  deadLetter: DeadLetter;
}) {
  if (status === "open" || resolved_at === null) return null;
  const outcome = requeues.at(-1)?.outcome;
  return (
    <p className={styles.note}>
      <Icon name={status === "discarded" ? "trash" : "operations"} />
      <span>
        {texts.decidedBy(status === "discarded", resolved_by ?? common.unknownActor)} <Ago at={resolved_at} />
        {resolution_reason ? <>: “{resolution_reason}”.</> : "."}{" "}
        {status === "requeued" && outcome && OUTCOMES[outcome]}
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
