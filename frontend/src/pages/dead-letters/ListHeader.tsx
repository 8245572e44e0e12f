import type { ReactNode } from "react";
import styles from "./ListHeader.module.css";

/** Header of a list: counts and actions on the left, the age of the data on the right. */
export function ListHeader({ age, children }: { age: ReactNode; children: ReactNode }) {
  return (
    <div className={styles.head}>
      {children}
      <span className={styles.age}>{age}</span>
    </div>
  );
}
