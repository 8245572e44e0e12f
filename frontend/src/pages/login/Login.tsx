import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { logIn, session } from "~/api/session";
import { Button, Page, Problem, TextField } from "~/ui";
import styles from "./Login.module.css";

/** Asks for a token, and logs in by itself with the one that the address carried. */
export default function Login({
  linked,
  onEntered,
}: {
  linked?: string | undefined;
  onEntered?: () => void;
}) {
  const queries = useQueryClient();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();

  async function enter(given: string) {
    setBusy(true);
    setRefused(undefined);
    try {
      queries.setQueryData(session.queryKey, await logIn(given));
      onEntered?.();
    } catch (problem) {
      setRefused(problem);
    } finally {
      setBusy(false);
    }
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: a link is used once, when the page comes up
  useEffect(() => {
    if (linked) void enter(linked);
  }, []);

  function submit(event: FormEvent) {
    event.preventDefault();
    const given = token.trim();
    if (given) void enter(given);
  }

  return (
    <main className={styles.place}>
      <Page title="Log in">
        <form className={styles.form} onSubmit={submit}>
          <p>
            With the token that you were given, or that <code>outbox token</code> makes. It stays with the
            service: this browser keeps a session that scripts cannot read.
          </p>
          <TextField
            label="Token"
            type="password"
            name="token"
            autoComplete="current-password"
            autoFocus
            spellCheck={false}
            placeholder="outbox_…"
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
          {refused !== undefined && <Problem of={refused} />}
          <Button
            type="submit"
            look="primary"
            icon="key"
            busy={busy}
            whyNot={token.trim() || busy ? undefined : "Type the token first."}
          >
            Log in
          </Button>
        </form>
      </Page>
    </main>
  );
}
