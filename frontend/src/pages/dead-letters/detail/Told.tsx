import { Link } from "wouter";
import type { Letter } from "~/api/dead-letter";
import { Ago, Icon } from "~/ui";
import styles from "./Told.module.css";

/** A message of so many characters may scroll, and what scrolls has to be reachable by keyboard. */
const LONG = 300;

/** What failed, and what has been decided about it, before all else. */
export function Told({ letter }: { letter: Letter }) {
  return (
    <div className={styles.told}>
      <p className={styles.error} tabIndex={letter.error.message.length > LONG ? 0 : undefined}>
        {letter.error.message || <span className="quiet">The error came without a message.</span>}
      </p>
      <p className="quiet">
        {GIVEN_UP[letter.source]} <Ago at={letter.failed_at} /> ({letter.cause})
      </p>
      <Decision letter={letter} />
      {letter.operation_id !== null && (
        <p className={styles.note}>
          <Icon name="operations" />
          <span>
            <Link href={`/operations/${letter.operation_id}`}>Operation {letter.operation_id}</Link> is to do
            something with it; until then nobody else can.
          </span>
        </p>
      )}
    </div>
  );
}

const GIVEN_UP: Record<Letter["source"], string> = {
  worker: "A worker gave it up",
  relay: "The relay could not send it, and parked it",
  broker: "The broker took it away",
};

function Decision({ letter: { status, resolved_at, resolved_by, resolution, lives } }: { letter: Letter }) {
  if (status === "open" || resolved_at === null) return null;
  const fate = lives.at(-1)?.fate;
  return (
    <p className={styles.note}>
      <Icon name={status === "discarded" ? "trash" : "operations"} />
      <span>
        {status === "discarded" ? "Discarded" : "Requeued"} by {resolved_by ?? "somebody"}{" "}
        <Ago at={resolved_at} />
        {resolution ? <>: “{resolution}”.</> : "."} {status === "requeued" && fate && FATES[fate]}
      </span>
    </p>
  );
}

const FATES = {
  "under way": "It is under way.",
  processed: "It has been processed since.",
  "died again": "It came back dead.",
  duplicate: "The queue's inbox knew it, and it was not processed again.",
};
