import { Icon, type IconName, stateStyle, type Tone } from "~/ui";
import styles from "./StateIcon.module.css";

const BY_TONE: Record<Tone, IconName> = {
  good: "check",
  bad: "dead",
  warn: "clock",
  info: "info",
  neutral: "info",
};

/** The icon of a state. The text next to it has to name the state. */
export function StateIcon({ of }: { of: string }) {
  const { icon, tone, label } = stateStyle(of);
  return (
    <span className={styles.icon} data-tone={tone} title={label}>
      <Icon name={icon ?? BY_TONE[tone]} />
    </span>
  );
}
