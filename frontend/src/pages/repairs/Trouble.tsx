import type { ReactNode } from "react";
import { failureOf } from "~/api/problems";
import { Button, Icon, Problem } from "~/ui";
import styles from "./Trouble.module.css";
import { driftOf, errorsOf, misfitsOf, whyAgain } from "./troubles";
import type { Repairing } from "./useRepairing";

/** What went wrong with the dry run or the deed, and what to do about it. */
export function Trouble({ repairing }: { repairing: Repairing }) {
  const { notice, run, repair, isLost, lookAgain, leaveOutNew } = repairing;
  const drift = driftOf(repair.error);
  return (
    <>
      {notice && <Notice title="Looked again">{notice}</Notice>}
      {drift && (
        <Notice
          title="The number has changed"
          action={<LookAgain onLook={() => lookAgain()} onLeaveOut={leaveOutNew} />}
        >
          {drift}
        </Notice>
      )}
      {isLost && <Lost thrown={repair.error} />}
      {repair.error && !drift && !isLost && !whyAgain(repair.error) && <Refused thrown={repair.error} />}
      {run.error && !repair.error && <Refused thrown={run.error} onRetry={() => lookAgain()} />}
    </>
  );
}

/** Whether it was done nobody here knows: asked again under the same key, it is told, and not done twice. */
function Lost({ thrown }: { thrown: unknown }) {
  const running = failureOf(thrown).code === "request-running";
  return (
    <Notice title={running ? "It is still under way" : "The answer was lost on its way"}>
      {running
        ? "The service is still at work on this request. "
        : "It may have been done, or not: nobody here knows. "}
      Ask again: the service knows this request and does nothing twice.
    </Notice>
  );
}

function LookAgain({ onLook, onLeaveOut }: { onLook(): void; onLeaveOut: (() => void) | undefined }) {
  return (
    <div className={styles.buttons}>
      <Button icon="operations" onClick={onLook}>
        Look again
      </Button>
      {onLeaveOut && <Button onClick={onLeaveOut}>Leave out what died since</Button>}
    </div>
  );
}

function Refused({ thrown, onRetry }: { thrown: unknown; onRetry?: () => void }) {
  const { code } = failureOf(thrown);
  const misfits = misfitsOf(thrown);
  if (
    code === "invalid-request" &&
    Object.keys(errorsOf(thrown)).length === misfits.length &&
    misfits.length > 0
  )
    return null;
  return (
    <>
      <Problem of={thrown} {...(onRetry && { onRetry })} />
      {misfits.length > 0 && (
        <ul className={styles.misfits}>
          {misfits.map(({ at, message }) => (
            <li key={`${at} ${message}`}>
              <code>{at}</code> {message}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Notice({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  return (
    <div role="alert" className={styles.notice}>
      <Icon name="info" />
      <div className={styles.words}>
        <strong>{title}</strong>
        <p>{children}</p>
        {action}
      </div>
    </div>
  );
}
