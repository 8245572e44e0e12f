import { Button as BaseButton } from "@base-ui/react/button";
import type { ComponentProps, ReactNode } from "react";
import * as texts from "~/texts/ui";
import styles from "./Button.module.css";
import { Hint } from "./Hint";
import { Icon, type IconName } from "./icons";

export interface ButtonProps extends Omit<ComponentProps<typeof BaseButton>, "className" | "disabled"> {
  look?: "plain" | "primary" | "danger" | "quiet";
  icon?: IconName;
  /** Why the button is disabled. It stays focusable and shows this on hover and focus. */
  whyNot?: string | undefined;
  /** Its action is in progress. */
  busy?: boolean;
  children?: ReactNode;
}

export function Button({ look = "plain", icon, whyNot, busy = false, children, ...rest }: ButtonProps) {
  const button = (
    <BaseButton
      {...rest}
      type={rest.type ?? "button"}
      className={styles.button ?? ""}
      data-look={look}
      data-busy={busy || undefined}
      data-alone={children === undefined || undefined}
      disabled={whyNot !== undefined || busy}
      focusableWhenDisabled
    >
      {icon && <Icon name={icon} />}
      {children}
      {busy && <span className="unseen">{texts.busy}</span>}
    </BaseButton>
  );
  return whyNot === undefined ? button : <Hint text={whyNot}>{button}</Hint>;
}

/** A button with only an icon; `label` is its accessible name and its tooltip. */
export function IconButton({
  label,
  ...rest
}: Omit<ButtonProps, "children"> & { label: string; icon: IconName }) {
  const button = <Button look="quiet" {...rest} aria-label={label} />;
  return rest.whyNot === undefined ? <Hint text={label}>{button}</Hint> : button;
}
