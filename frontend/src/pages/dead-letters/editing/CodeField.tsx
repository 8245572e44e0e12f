import { useEffect, useRef } from "react";
import styles from "./CodeField.module.css";
import { type CodeEditor, codeEditor } from "./code-editor";

export interface CodeFieldProps {
  label: string;
  value: string;
  onChange(value: string): void;
  /** Enables JSON highlighting and folding. */
  json?: boolean;
  /** The error and its position, shown below the field. */
  error: string | undefined;
  /** Number of the line to mark as wrong. */
  wrongLine?: number | undefined;
  hint: string;
}

/** A text editor with line numbers. Tab leaves it, as in any other field. */
export function CodeField({ label, value, onChange, json = false, error, wrongLine, hint }: CodeFieldProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<CodeEditor>(null);
  const latest = useRef({ value, onChange });
  latest.current = { value, onChange };
  const about = error ?? hint;

  useEffect(() => {
    if (!host.current) return;
    const made = codeEditor(host.current, latest.current.value, (text) => latest.current.onChange(text));
    editor.current = made;
    made.focus();
    return () => made.destroy();
  }, []);
  useEffect(() => editor.current?.write(value), [value]);
  useEffect(
    () => editor.current?.configure({ label, json, about, invalid: error !== undefined, wrongLine }),
    [label, json, about, error, wrongLine],
  );
  return (
    <div className={styles.field}>
      <div ref={host} className={styles.frame} data-editor data-invalid={error !== undefined || undefined} />
      <p className={error === undefined ? styles.hint : styles.error}>{about}</p>
    </div>
  );
}
