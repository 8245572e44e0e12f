import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { type Failure, toFailure } from "~/api/problems";
import { logIn, loginMethods, session } from "~/api/session";
import * as texts from "~/texts/login";
import { Button, OutboxSwitch, Page, Problem, TextField } from "~/ui";
import styles from "./Login.module.css";
import { loginFailure, providerAddress } from "./link";
import { RateLimited } from "./RateLimited";

/** The login page. Logs in without asking if the URL contained a token. */
export default function Login({
  linked,
  ended = false,
  onEntered,
}: {
  linked?: string | undefined;
  /** Whether a session in this tab has ended, by itself or by logging out. */
  ended?: boolean;
  onEntered?: () => void;
}) {
  const queries = useQueryClient();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [rejection, setRejection] = useState<{ failure: Failure; at: number }>();
  const field = useRef<HTMLInputElement>(null);
  const isWrong = rejection?.failure.code === "unauthenticated";
  const methods = useQuery(loginMethods);
  const failed = loginFailure();

  async function enter(given: string) {
    setBusy(true);
    setRejection(undefined);
    try {
      const identity = await logIn(given);
      onEntered?.();
      queries.setQueryData(session.queryKey, identity);
      void queries.invalidateQueries();
    } catch (problem) {
      setRejection({ failure: toFailure(problem), at: Date.now() });
      field.current?.select();
    } finally {
      setBusy(false);
    }
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: a link is used once, when the page opens
  useEffect(() => {
    if (linked) void enter(linked);
  }, []);

  function submit(event: FormEvent) {
    event.preventDefault();
    const given = token.trim();
    if (given && !busy) void enter(given);
  }

  return (
    <main className={styles.place}>
      <div className={styles.column}>
        <div className={styles.head}>
          <img src="./icon.svg" alt={texts.product} width="44" height="44" />
          <OutboxSwitch />
        </div>
        <Page title={texts.title}>
          <form className={styles.form} onSubmit={submit}>
            {ended && <p className={styles.ended}>{texts.sessionEnded}</p>}
            {failed && (
              <p className={styles.failed} role="alert">
                {texts.providerFailures[failed] ?? texts.providerFailed}
              </p>
            )}
            {methods.data?.provider && (
              <>
                <a className={styles.provider} href={providerAddress()}>
                  {texts.provider}
                </a>
                <p className={styles.or}>{texts.orToken}</p>
              </>
            )}
            <TextField
              ref={field}
              label={texts.token}
              type="password"
              name="token"
              autoComplete="current-password"
              autoFocus={methods.data?.provider !== true}
              spellCheck={false}
              placeholder={texts.tokenFormat}
              error={isWrong ? (linked ? texts.linkExpired : texts.wrongToken) : undefined}
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
            {rejection && rejection.failure.code === "too_many_logins" ? (
              <RateLimited seconds={rejection.failure.retryAfter} at={rejection.at} />
            ) : (
              rejection && !isWrong && <Problem of={rejection.failure} />
            )}
            <Button
              type="submit"
              look="primary"
              icon="key"
              busy={busy}
              whyNot={token.trim() || busy ? undefined : texts.tokenRequired}
            >
              {texts.title}
            </Button>
            <p>
              {texts.howToGetToken} <code>{texts.tokenCommand}</code>
              {texts.sessionKept}
            </p>
          </form>
        </Page>
      </div>
    </main>
  );
}
