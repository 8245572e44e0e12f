import type { ReactNode } from "react";
import type { Tone } from "~/ui";
import styles from "./Tiles.module.css";

/** A number with its name, and an explanation below. */
export function Tile({
  name,
  value,
  aside,
  tone = "neutral",
  children,
}: {
  name: string;
  value: ReactNode;
  aside?: ReactNode;
  tone?: Tone;
  children: ReactNode;
}) {
  return (
    <section className={styles.tile} data-tone={tone} aria-label={name}>
      <h2 className={styles.name}>{name}</h2>
      <p className={styles.value}>
        {value} {aside}
      </p>
      <div className={styles.meaning}>{children}</div>
    </section>
  );
}
