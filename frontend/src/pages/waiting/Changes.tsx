import { useState } from "react";
import { useWhyNot } from "~/api/session";
import type { WaitingAction, WaitingTarget } from "~/api/waiting";
import { Button } from "~/ui";
import { ChangeDialog } from "./ChangeDialog";
import styles from "./Waiting.module.css";

interface Choice {
  action: WaitingAction;
  label: string;
  /** Why it makes no sense here; undefined: it does. */
  whyNot?: string | undefined;
}

/** Buttons for changes of the same messages; each asks once more. */
export function Changes({
  target,
  choices,
  children,
}: {
  target: WaitingTarget;
  choices: readonly Choice[];
  children?: React.ReactNode;
}) {
  const mayNot = useWhyNot("repair");
  const [asked, setAsked] = useState<WaitingAction>();
  return (
    <div className={styles.actions}>
      {choices.map(({ action, label, whyNot }) => (
        <Button key={action} whyNot={mayNot ?? whyNot} onClick={() => setAsked(action)}>
          {label}
        </Button>
      ))}
      {children}
      {asked && <ChangeDialog action={asked} target={target} onClose={() => setAsked(undefined)} />}
    </div>
  );
}
