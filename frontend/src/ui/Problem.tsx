import { failureOf } from "~/api/problems";
import { Button } from "./Button";
import { CopyButton } from "./Copy";
import { Icon } from "./icons";
import styles from "./Problem.module.css";

/** A request that failed: what happened, what to do, and what the log calls it. */
export function Problem({ of, onRetry }: { of: unknown; onRetry?: () => void }) {
  const failure = failureOf(of);
  return (
    <div role="alert" className={styles.problem}>
      <Icon name="dead" />
      <div className={styles.words}>
        <strong>{failure.title}</strong>
        <p>{failure.message}</p>
        <p className={styles.facts}>
          <span>
            Code <code>{failure.code}</code>
          </span>
          {failure.requestId && (
            <span>
              Request <code>{failure.requestId}</code>{" "}
              <CopyButton text={failure.requestId} label="Copy the request's id" />
            </span>
          )}
          {failure.retryAfter && <span>The service asks to wait {failure.retryAfter} s.</span>}
        </p>
        {onRetry && (
          <Button icon="operations" onClick={onRetry}>
            Try again
          </Button>
        )}
      </div>
    </div>
  );
}
