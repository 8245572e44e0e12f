import { Tooltip } from "@base-ui/react/tooltip";
import { type ReactElement, useId } from "react";
import styles from "./Hint.module.css";

/** A tooltip, also the accessible description of its trigger. */
export function Hint({ text, children }: { text: string; children: ReactElement<Record<string, unknown>> }) {
  const id = useId();
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children} aria-describedby={id} delay={300} />
      <span id={id} hidden>
        {text}
      </span>
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} collisionPadding={8} className={styles.layer ?? ""}>
          <Tooltip.Popup className={styles.hint ?? ""}>{text}</Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
