import { Dialog as BaseDialog } from "@base-ui/react/dialog";
import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { suspendUpdates } from "~/api/live";
import * as common from "~/texts/common";
import * as texts from "~/texts/ui";
import { Button, IconButton } from "./Button";
import styles from "./Dialog.module.css";

export interface DialogProps {
  open: boolean;
  onClose(): void;
  title: ReactNode;
  /** One or two sentences below the title. */
  description?: ReactNode;
  /** The buttons at its end, the one that does it last. */
  actions?: ReactNode;
  wide?: boolean;
  /** Asks before it closes when this is true: something was typed. */
  unsaved?: boolean;
  children?: ReactNode;
}

/** A modal dialog: focus stays inside and returns where it came from; what is behind it rests meanwhile. */
export function Dialog({
  open,
  onClose,
  title,
  description,
  actions,
  wide = false,
  unsaved = false,
  children,
}: DialogProps) {
  useEffect(() => (open ? suspendUpdates("dialog") : undefined), [open]);
  const popup = useFocusInside(open);
  function close() {
    if (!unsaved || window.confirm(texts.unsaved)) onClose();
  }
  return (
    <BaseDialog.Root open={open} onOpenChange={(now) => !now && close()}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={styles.backdrop ?? ""} />
        <BaseDialog.Popup
          className={styles.dialog ?? ""}
          data-wide={wide || undefined}
          data-modal
          ref={popup}
          initialFocus={() => beginningOf(popup.current)}
        >
          <header className={styles.head}>
            <div>
              <BaseDialog.Title className={styles.title ?? ""}>{title}</BaseDialog.Title>
              {description && (
                <BaseDialog.Description className={styles.description ?? ""}>
                  {description}
                </BaseDialog.Description>
              )}
            </div>
            <IconButton icon="cross" label={common.close} onClick={close} />
          </header>
          <div className={styles.body}>{children}</div>
          {actions && <footer className={styles.foot}>{actions}</footer>}
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

/** The button at a dialog's end that leaves it; asks first where something was typed, as every way out does. */
export function DialogClose({ children }: { children: string }) {
  return <BaseDialog.Close render={<Button>{children}</Button>} />;
}

/** What it begins with where that is typed into; else itself, so that it is read out, and no key chooses anything. */
function beginningOf(dialog: HTMLElement | null): HTMLElement | null {
  const first = dialog?.querySelector<HTMLElement>(
    "input:not([aria-hidden]), textarea, select, [data-editor]",
  );
  return first?.matches("textarea, [data-editor], input:not([type=checkbox], [type=radio])") ? first : dialog;
}

/** Takes the focus in where it stayed outside: a dialog whose place this one took gave it back to the page. */
function useFocusInside(open: boolean): RefObject<HTMLDivElement | null> {
  const popup = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const frame = requestAnimationFrame(() => {
      if (!popup.current?.contains(document.activeElement)) beginningOf(popup.current)?.focus();
    });
    return () => cancelAnimationFrame(frame);
  }, [open]);
  return popup;
}
