import { type KeyboardEvent, useId, useMemo, useRef } from "react";
import styles from "./CodeField.module.css";

export interface CodeFieldProps {
  label: string;
  value: string;
  onChange(value: string): void;
  /** What is wrong, with its place; below the field while it is typed. */
  error: string | undefined;
  /** A line that is wrong, to be marked. */
  wrongLine?: number | undefined;
  hint: string;
}

/** A field for text with numbered lines. Tab leaves it, as everywhere. */
export function CodeField({ label, value, onChange, error, wrongLine, hint }: CodeFieldProps) {
  const id = useId();
  const gutter = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => value.split("\n").length, [value]);
  return (
    <div className={styles.field}>
      <label htmlFor={id} className="unseen">
        {label}
      </label>
      <div className={styles.frame} data-invalid={error !== undefined || undefined}>
        <div ref={gutter} className={styles.gutter} aria-hidden="true">
          <Numbers lines={lines} wrong={wrongLine} />
        </div>
        <textarea
          id={id}
          className={styles.text}
          value={value}
          rows={Math.min(24, Math.max(8, lines + 1))}
          wrap="off"
          // biome-ignore lint/a11y/noAutofocus: the user opens the editor to type
          autoFocus
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          aria-invalid={error !== undefined}
          aria-describedby={`${id}-about`}
          onChange={(event) => onChange(event.target.value)}
          onKeyDown={keepIndent}
          onScroll={(event) => {
            if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop;
          }}
        />
      </div>
      <p id={`${id}-about`} className={error === undefined ? styles.hint : styles.error}>
        {error ?? hint}
      </p>
    </div>
  );
}

function Numbers({ lines, wrong }: { lines: number; wrong: number | undefined }) {
  const numbers = useMemo(() => Array.from({ length: lines }, (_, index) => index + 1), [lines]);
  return numbers.map((line) => (
    <div key={line} data-wrong={line === wrong || undefined}>
      {line}
    </div>
  ));
}

/** A new line begins where the one before it did. */
function keepIndent(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey) return;
  const { value, selectionStart } = event.currentTarget;
  const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
  const indent = /^ */.exec(line)?.[0] ?? "";
  if (!indent) return;
  event.preventDefault();
  // execCommand keeps the browser's own undo
  document.execCommand("insertText", false, `\n${indent}`);
}
