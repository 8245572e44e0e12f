import type { ReactNode } from "react";
import styles from "./SidePanel.module.css";

/** A panel next to a list that scrolls separately. In windows up to 1180 pixels wide it replaces the list. */
export function SidePanel({ children }: { children: ReactNode }) {
  return <div className={styles.panel}>{children}</div>;
}
