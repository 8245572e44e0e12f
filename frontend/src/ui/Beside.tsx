import type { ReactNode } from "react";
import styles from "./Beside.module.css";

/** What is open beside a list: it scrolls by itself. Up to 1180 pixels the page has room for it alone, in the list's place. */
export function Beside({ children }: { children: ReactNode }) {
  return <div className={styles.beside}>{children}</div>;
}
