import { toFailure } from "~/api/problems";
import * as common from "~/texts/common";
import * as texts from "~/texts/ui";
import { Button } from "./Button";
import { CopyButton } from "./Copy";
import { Icon } from "./icons";
import styles from "./Problem.module.css";

/** A failed request: message, code and request id, with a button to retry. */
export function Problem({ of, onRetry }: { of: unknown; onRetry?: () => void }) {
  const failure = toFailure(of);
  return (
    <div role="alert" className={styles.problem}>
      <Icon name="dead" />
      <div className={styles.words}>
        <strong>{failure.title}</strong>
        <p>{failure.message}</p>
        <p className={styles.facts}>
          <span>
            {texts.code} <code>{failure.code}</code>
          </span>
          {failure.requestId && (
            <span>
              {texts.request} <code>{failure.requestId}</code>{" "}
              <CopyButton text={failure.requestId} label={texts.copyRequestId} />
            </span>
          )}
          {failure.retryAfter && <span>{texts.retryAfter(failure.retryAfter)}</span>}
        </p>
        {failure.status === 401 && (
          <p>
            <a href={window.location.href} target="_blank" rel="noopener">
              {texts.logInElsewhere}
            </a>
            {texts.thenTryAgain}
          </p>
        )}
        {onRetry && (
          <Button icon="operations" onClick={onRetry}>
            {common.tryAgain}
          </Button>
        )}
      </div>
    </div>
  );
}
