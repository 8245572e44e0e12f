import type { ReactNode } from "react";
import styles from "./Badge.module.css";
import { Icon, type IconName } from "./icons";

export type Tone = "neutral" | "good" | "warn" | "bad" | "info";

const ICONS: Record<Tone, IconName | undefined> = {
  neutral: undefined,
  good: "check",
  warn: "clock",
  bad: "dead",
  info: "info",
};

/** A word about a state. The icon says it too, for those who do not see the colour. */
export function Badge({
  tone = "neutral",
  icon = ICONS[tone],
  children,
}: {
  tone?: Tone;
  /** null: none, where the words are a name and no state. */
  icon?: IconName | null | undefined;
  children: ReactNode;
}) {
  return (
    <span className={styles.badge} data-tone={tone}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}
