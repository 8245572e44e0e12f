import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Identity, logIn, session } from "~/api/session";
import * as texts from "~/texts/login";
import { Button, Page, Problem } from "~/ui";
import styles from "./Login.module.css";

/** Asks before a login link replaces the current session: the link may be another user's. */
export default function SwitchSession({
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
  const [rejection, setRejection] = useState<unknown>();

  async function go() {
    setBusy(true);
    setRejection(undefined);
    try {
      const identity = await logIn(token);
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
      onDone();
      queries.setQueryData(session.queryKey, identity);
    } catch (problem) {
      setRejection(problem);
    } finally {
      setBusy(false);
    }
  }

  return (
    <main className={styles.place}>
      <div className={styles.column}>
        <img src="./icon.svg" alt={texts.product} width="44" height="44" />
        <Page title={texts.switchTitle}>
          <div className={styles.form}>
            <p>
              {texts.youAre} <strong>{from.name}</strong>
              {texts.switchHint(from.role)}
            </p>
            {rejection !== undefined && <Problem of={rejection} />}
            <Button look="primary" autoFocus onClick={onDone}>
              {texts.stay(from.name)}
            </Button>
            <Button icon="key" busy={busy} onClick={() => void go()}>
              {texts.switchSession}
            </Button>
          </div>
        </Page>
      </div>
    </main>
  );
}
