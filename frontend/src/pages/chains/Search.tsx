import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { chainAddress } from "~/api/chains";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/chains";
import { Button } from "~/ui";
import styles from "./Search.module.css";

/** Opens the chain of the ID that the user enters. */
export function Search({ keys = "/" }: { keys?: string }) {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useShortcuts(texts.title, [{ keys, label: texts.lookUp, run: () => field.current?.focus() }]);
  const id = typed.trim();
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!id) return;
    setTyped("");
    navigate(chainAddress(id));
  }
  return (
    <search className={styles.container}>
      <form className={styles.search} onSubmit={submit}>
        <label className="unseen" htmlFor="chain-id">
          {texts.anyId}
        </label>
        <input
          ref={field}
          id="chain-id"
          className={styles.field}
          value={typed}
          size={38}
          maxLength={4_000}
          placeholder={texts.anyIdShort}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button type="submit" icon="search" whyNot={id ? undefined : texts.enterId}>
          {texts.find}
        </Button>
      </form>
    </search>
  );
}
