import { type ReactNode, useId } from "react";
import styles from "./Panel.module.css";

/** A section of a page with a heading, and controls at its right. */
export function Panel({
  title,
  aside,
  flush = false,
  children,
}: {
  title: ReactNode;
  aside?: ReactNode;
  flush?: boolean;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section className={styles.panel} aria-labelledby={id}>
      <header className={styles.head}>
        <h2 id={id}>{title}</h2>
        {aside && <div className={styles.aside}>{aside}</div>}
      </header>
      <div className={styles.body} data-flush={flush || undefined}>
        {children}
      </div>
    </section>
  );
}
