import type { ReactNode } from "react";
import { toFailure } from "~/api/problems";
import * as texts from "~/texts/repairs";
import { Button, Icon, Problem } from "~/ui";
import { countChangeOf, errorsOf, fieldProblemsOf, whyNewDryRun } from "./problems";
import styles from "./RepairProblem.module.css";
import type { RepairForm } from "./useRepairForm";

/** Why the dry run or the change failed, and how to continue. */
export function RepairProblem({ repairForm }: { repairForm: RepairForm }) {
  const { notice, run, repair, isLost, repeatDryRun, excludeNew } = repairForm;
  const countChange = countChangeOf(repair.error);
  return (
    <>
      {notice && <Notice title={texts.newDryRun}>{notice}</Notice>}
      {countChange && (
        <Notice
          title={texts.countChanged}
          action={<RepeatDryRun onRepeat={() => repeatDryRun()} onExclude={excludeNew} />}
        >
          {countChange}
        </Notice>
      )}
      {isLost && <NoResponse thrown={repair.error} />}
      {repair.error && !countChange && !isLost && !whyNewDryRun(repair.error) && (
        <Rejected thrown={repair.error} />
      )}
      {run.error && !repair.error && <Rejected thrown={run.error} onRetry={() => repeatDryRun()} />}
    </>
  );
}

/** Shown when the outcome is unknown. A retry with the same key returns the outcome and does not run the change twice. */
function NoResponse({ thrown }: { thrown: unknown }) {
  const running = toFailure(thrown).code === "request_running";
  return (
    <Notice title={running ? texts.stillRunning : texts.responseLost}>{texts.tryAgainHint(running)}</Notice>
  );
}

function RepeatDryRun({ onRepeat, onExclude }: { onRepeat(): void; onExclude: (() => void) | undefined }) {
  return (
    <div className={styles.buttons}>
      <Button icon="operations" onClick={onRepeat}>
        {texts.dryRunAgain}
      </Button>
      {onExclude && <Button onClick={onExclude}>{texts.excludeNew}</Button>}
    </div>
  );
}

function Rejected({ thrown, onRetry }: { thrown: unknown; onRetry?: () => void }) {
  const { code } = toFailure(thrown);
  const problems = fieldProblemsOf(thrown);
  if (
    code === "invalid_request" &&
    Object.keys(errorsOf(thrown)).length === problems.length &&
    problems.length > 0
  )
    return null;
  return (
    <>
      <Problem of={thrown} {...(onRetry && { onRetry })} />
      {problems.length > 0 && (
        <ul className={styles.problems}>
          {problems.map(({ at, message }) => (
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
