import type { ReactNode } from "react";
import styles from "./ListHeader.module.css";

/** Above rows: how many they are and what can be done with all of them; at the right, how old that is. */
export function ListHeader({ age, children }: { age: ReactNode; children: ReactNode }) {
  return (
    <div className={styles.head}>
      {children}
      <span className={styles.age}>{age}</span>
    </div>
  );
}
