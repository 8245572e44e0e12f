import { useState } from "react";
import { useWhyNot } from "~/api/session";
import type { WaitingAction, WaitingTarget } from "~/api/waiting";
import { Button } from "~/ui";
import { ChangeDialog } from "./ChangeDialog";
import styles from "./Waiting.module.css";

interface Choice {
  action: WaitingAction;
  label: string;
  /** Why the action is not possible; undefined if it is. */
  whyNot?: string | undefined;
}

/** Buttons that change the same messages, each after confirmation. */
export function Changes({
  target,
  choices,
  children,
}: {
  target: WaitingTarget;
  choices: readonly Choice[];
  children?: React.ReactNode;
}) {
  const denied = useWhyNot("repair");
  const [open, setOpen] = useState<WaitingAction>();
  return (
    <div className={styles.actions}>
      {choices.map(({ action, label, whyNot }) => (
        <Button key={action} whyNot={denied ?? whyNot} onClick={() => setOpen(action)}>
          {label}
        </Button>
      ))}
      {children}
      {open && <ChangeDialog action={open} target={target} onClose={() => setOpen(undefined)} />}
    </div>
  );
}
