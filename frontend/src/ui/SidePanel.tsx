import type { ReactNode } from "react";
import styles from "./SidePanel.module.css";

/** The panel next to a list, with its own scrolling. Up to 1180 pixels it replaces the list. */
export function SidePanel({ children }: { children: ReactNode }) {
  return <div className={styles.panel}>{children}</div>;
}
