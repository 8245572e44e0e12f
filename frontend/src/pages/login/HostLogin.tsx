import { failureOf } from "~/api/problems";
import { Button, Page } from "~/ui";
import styles from "./Login.module.css";

/** For whom the application around the admin does not know: what it answered, and where it logs people in. */
export default function HostLogin({ at, of, onRetry }: { at: string; of: unknown; onRetry: () => void }) {
  const failure = failureOf(of);
  return (
    <main className={styles.place}>
      <div className={styles.column}>
        <img src="./icon.svg" alt="Outbox" width="44" height="44" />
        <Page title="Log in">
          <div className={styles.form}>
            <p>
              The application that this dashboard is part of says who is asking. It does not know you, and
              answered <strong>{failure.status}</strong>:
            </p>
            <pre className={styles.answer}>{answerOf(failure.more.body, failure.message)}</pre>
            {at ? (
              <p>
                <a href={at}>Log in to the application</a>, then come back.
              </p>
            ) : (
              <p>Log in to the application as you always do, then come back.</p>
            )}
            <Button icon="operations" onClick={onRetry}>
              Try again
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
