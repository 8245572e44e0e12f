import styles from "./payload.module.css";

/** Preformatted text in a scrollable region. */
export function Scroll({
  label,
  wrap = false,
  children,
}: {
  label: string;
  wrap?: boolean;
  children: string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
    <section className={styles.raw} data-wrap={wrap || undefined} aria-label={label} tabIndex={0}>
      <pre>{children}</pre>
    </section>
  );
}
