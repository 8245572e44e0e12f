import { toFailure } from "~/api/problems";
import * as common from "~/texts/common";
import * as texts from "~/texts/login";
import { Button, OutboxSwitch, Page } from "~/ui";
import styles from "./Login.module.css";

/** Shown to users whom the host application does not recognize: its response, and a link to its login page. */
export default function HostLogin({ at, of, onRetry }: { at: string; of: unknown; onRetry: () => void }) {
  const failure = toFailure(of);
  return (
    <main className={styles.place}>
      <div className={styles.column}>
        <div className={styles.head}>
          <img src="./icon.svg" alt={texts.product} width="44" height="44" />
          <OutboxSwitch />
        </div>
        <Page title={texts.title}>
          <div className={styles.form}>
            <p>
              {texts.hostUnknown} <strong>{failure.status}</strong>:
            </p>
            <pre className={styles.answer}>{messageIn(failure.more.body, failure.message)}</pre>
            {at ? (
              <p>
                <a href={at}>{texts.hostLogin}</a>
                {texts.thenReturn}
              </p>
            ) : (
              <p>{texts.hostLoginFirst}</p>
            )}
            <Button icon="operations" onClick={onRetry}>
              {common.tryAgain}
            </Button>
          </div>
        </Page>
      </div>
    </main>
  );
}

const MAX_LENGTH = 500;

/** Returns the message in a response of unknown format, or the response itself, or `fallback`. */
function messageIn(body: unknown, fallback: string): string {
  if (typeof body === "string" && body.trim()) return body.trim().slice(0, MAX_LENGTH);
  if (typeof body !== "object" || body === null) return fallback;
  const { detail, message } = body as Record<string, unknown>;
  const text = typeof detail === "string" ? detail : typeof message === "string" ? message : undefined;
  return (text ?? JSON.stringify(body)).slice(0, MAX_LENGTH);
}
