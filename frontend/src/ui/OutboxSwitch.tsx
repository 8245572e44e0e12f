import { type KeyboardEvent, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { pageIn, useOutboxes } from "~/api/outboxes";
import { outbox } from "~/lib/mount";
import * as texts from "~/texts/ui";
import { EnvironmentBadge } from "./Badge";
import { Icon } from "./icons";
import styles from "./OutboxSwitch.module.css";

/** The current outbox, with links to the same page of the others; nothing if the address serves a single one. */
export function OutboxSwitch() {
  const others = useOutboxes();
  const [location] = useLocation();
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useId();
  if (outbox === undefined) return null;
  if (others.length < 2) return <span className={styles.only}>{outbox}</span>;

  function closeOnEscape(event: KeyboardEvent) {
    if (event.key !== "Escape" || !open) return;
    event.preventDefault();
    setOpen(false);
    button.current?.focus();
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it handles keys and focus of the controls in it
    <div
      className={styles.switch}
      onKeyDown={closeOnEscape}
      onBlur={({ currentTarget, relatedTarget }) => currentTarget.contains(relatedTarget) || setOpen(false)}
    >
      <button
        ref={button}
        type="button"
        className={styles.button}
        aria-expanded={open}
        aria-controls={list}
        onClick={() => setOpen(!open)}
      >
        <span className="unseen">{texts.outbox} </span>
        <span className={styles.name}>{outbox}</span>
        <Icon name={open ? "up" : "down"} />
      </button>
      <ul id={list} className={styles.list} aria-label={texts.outboxes} hidden={!open}>
        {others.map(({ name, may_enter, environment }) => (
          <li key={name}>
            <a href={pageIn(name, location)} aria-current={name === outbox ? "true" : undefined}>
              <span className={styles.name}>{name}</span>
              {environment && <EnvironmentBadge {...environment} />}
              {may_enter === false && <span className={styles.note}>{texts.logInThere}</span>}
              {name === outbox && <Icon name="check" />}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
