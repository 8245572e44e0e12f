import type { ReactNode } from "react";
import type { Environment } from "~/api/outboxes";
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

/** A label with a tone. The icon conveys the tone without colour. */
export function Badge({
  tone = "neutral",
  icon = ICONS[tone],
  children,
}: {
  tone?: Tone;
  /** null for no icon, if the label is a name rather than a state. */
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

const ENVIRONMENT_TONES = {
  red: "bad",
  amber: "warn",
  green: "good",
  blue: "info",
  grey: "neutral",
} as const;

/** The name of an installation in its colour. */
export function EnvironmentBadge({ name, colour }: Environment) {
  return (
    <Badge tone={ENVIRONMENT_TONES[colour]} icon={null}>
      {name}
    </Badge>
  );
}
