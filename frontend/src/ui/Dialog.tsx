import { Dialog as BaseDialog } from "@base-ui/react/dialog";
import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { rest } from "~/api/live";
import { IconButton } from "./Button";
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
  useEffect(() => (open ? rest("dialog") : undefined), [open]);
  const popup = useFocusInside(open);
  function close() {
    if (!unsaved || window.confirm("Close this and lose what you typed?")) onClose();
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
            <IconButton icon="cross" label="Close" onClick={close} />
          </header>
          <div className={styles.body}>{children}</div>
          {actions && <footer className={styles.foot}>{actions}</footer>}
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

/** Takes the focus in where it stayed outside: a dialog whose place this one took gave it back to the page. */
function useFocusInside(open: boolean): RefObject<HTMLDivElement | null> {
  const popup = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const frame = requestAnimationFrame(() => {
      if (!popup.current?.contains(document.activeElement)) popup.current?.focus();
    });
    return () => cancelAnimationFrame(frame);
  }, [open]);
  return popup;
}
