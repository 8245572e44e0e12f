import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Identity, logIn, session } from "~/api/session";
import { Button, Page, Problem } from "~/ui";
import styles from "./Login.module.css";

/** Asks whoever is inside and opens a link that logs in: it may be somebody else's, and ends the session that there is. */
export default function Switch({
  from,
  token,
  onDone,
}: {
  from: Identity;
  token: string;
  onDone: () => void;
}) {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();

  async function go() {
    setBusy(true);
    setRefused(undefined);
    try {
      const identity = await logIn(token);
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
      onDone();
      queries.setQueryData(session.queryKey, identity);
    } catch (problem) {
      setRefused(problem);
    } finally {
      setBusy(false);
    }
  }

  return (
    <main className={styles.place}>
      <div className={styles.column}>
        <img src="./icon.svg" alt="Outbox" width="44" height="44" />
        <Page title="Log in by this link?">
          <div className={styles.form}>
            <p>
              You are here as <strong>{from.name}</strong>, {from.role}. The link that you opened logs in with
              a token of its own. Go on only if you know who made it; your present session ends then.
            </p>
            {refused !== undefined && <Problem of={refused} />}
            <Button look="primary" autoFocus onClick={onDone}>
              Stay {from.name}
            </Button>
            <Button icon="key" busy={busy} onClick={() => void go()}>
              Log in by the link
            </Button>
          </div>
        </Page>
      </div>
    </main>
  );
}
