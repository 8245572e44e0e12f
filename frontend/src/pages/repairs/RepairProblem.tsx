import type { ReactNode } from "react";
import { toFailure } from "~/api/problems";
import * as texts from "~/texts/repairs";
import { Button, Icon, Problem } from "~/ui";
import { countChangeOf, errorsOf, fieldProblemsOf, whyNewDryRun } from "./problems";
import styles from "./RepairProblem.module.css";
import type { RepairForm } from "./useRepairForm";

/** What went wrong with the dry run or the change, and what to do about it. */
export function RepairProblem({ repairing }: { repairing: RepairForm }) {
  const { notice, run, repair, isLost, lookAgain, leaveOutNew } = repairing;
  const drift = countChangeOf(repair.error);
  return (
    <>
      {notice && <Notice title={texts.newDryRun}>{notice}</Notice>}
      {drift && (
        <Notice
          title={texts.countChanged}
          action={<RepeatDryRun onLook={() => lookAgain()} onLeaveOut={leaveOutNew} />}
        >
          {drift}
        </Notice>
      )}
      {isLost && <NoResponse thrown={repair.error} />}
      {repair.error && !drift && !isLost && !whyNewDryRun(repair.error) && <Refused thrown={repair.error} />}
      {run.error && !repair.error && <Refused thrown={run.error} onRetry={() => lookAgain()} />}
    </>
  );
}

/** The outcome is unknown here: a retry under the same key returns it, and nothing runs twice. */
function NoResponse({ thrown }: { thrown: unknown }) {
  const running = toFailure(thrown).code === "request_running";
  return (
    <Notice title={running ? texts.stillRunning : texts.responseLost}>{texts.tryAgainHint(running)}</Notice>
  );
}

function RepeatDryRun({ onLook, onLeaveOut }: { onLook(): void; onLeaveOut: (() => void) | undefined }) {
  return (
    <div className={styles.buttons}>
      <Button icon="operations" onClick={onLook}>
        {texts.dryRunAgain}
      </Button>
      {onLeaveOut && <Button onClick={onLeaveOut}>{texts.excludeNew}</Button>}
    </div>
  );
}

function Refused({ thrown, onRetry }: { thrown: unknown; onRetry?: () => void }) {
  const { code } = toFailure(thrown);
  const misfits = fieldProblemsOf(thrown);
  if (
    code === "invalid_request" &&
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
