import { toFailure } from "~/api/problems";
import * as common from "~/texts/common";
import * as texts from "~/texts/login";
import { Button, Page } from "~/ui";
import styles from "./Login.module.css";

/** For whom the application around the admin does not know: what it answered, and where it logs people in. */
export default function HostLogin({ at, of, onRetry }: { at: string; of: unknown; onRetry: () => void }) {
  const failure = toFailure(of);
  return (
    <main className={styles.place}>
      <div className={styles.column}>
        <img src="./icon.svg" alt={texts.product} width="44" height="44" />
        <Page title={texts.title}>
          <div className={styles.form}>
            <p>
              {texts.hostUnknown} <strong>{failure.status}</strong>:
            </p>
            <pre className={styles.answer}>{answerOf(failure.more.body, failure.message)}</pre>
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

const LONGEST = 500;

/** The words of an answer in a format that is not ours, as far as they can be found. */
function answerOf(body: unknown, otherwise: string): string {
  if (typeof body === "string" && body.trim()) return body.trim().slice(0, LONGEST);
  if (typeof body !== "object" || body === null) return otherwise;
  const { detail, message } = body as Record<string, unknown>;
  const words = typeof detail === "string" ? detail : typeof message === "string" ? message : undefined;
  return (words ?? JSON.stringify(body)).slice(0, LONGEST);
}
