import { Dialog as BaseDialog } from "@base-ui/react/dialog";
import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { suspendUpdates } from "~/api/live";
import { guardHistory } from "~/lib/unsaved";
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
  /** Buttons of the footer, the primary one last. */
  actions?: ReactNode;
  wide?: boolean;
  /** Whether there is unsaved input. Closing the dialog, going back, reloading the page or leaving it then asks for confirmation. */
  unsaved?: boolean;
  children?: ReactNode;
}

/** A modal dialog. Keeps focus inside, restores it on close, and suspends live updates while open. */
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
  useEffect(() => {
    if (!open || !unsaved) return;
    const ask = (event: Event) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    const unguard = guardHistory(() => {
      const leaves = window.confirm(texts.unsaved);
      if (leaves) onClose();
      return leaves;
    });
    return () => {
      window.removeEventListener("beforeunload", ask);
      unguard();
    };
  }, [open, unsaved, onClose]);
  const popup = useFocusInside(open);
  const opener = useOpener(open);
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
          initialFocus={() => initialFocusIn(popup.current)}
          finalFocus={opener}
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

/** Footer button that closes the dialog, after confirmation if there is unsaved input. */
export function DialogClose({ children }: { children: string }) {
  return <BaseDialog.Close render={<Button>{children}</Button>} />;
}

/** Element to focus first: the first control if it takes text, otherwise the dialog, so that a key press cannot change a choice. */
function initialFocusIn(dialog: HTMLElement | null): HTMLElement | null {
  const first = dialog?.querySelector<HTMLElement>(
    "input:not([aria-hidden]), textarea, select, [data-editor]",
  );
  return first?.matches("textarea, [data-editor], input:not([type=checkbox], [type=radio])") ? first : dialog;
}

/** The element that had focus before the dialog opened. */
function useOpener(open: boolean): RefObject<HTMLElement | null> {
  const opener = useRef<HTMLElement | null>(null);
  const wasOpen = useRef(false);
  if (open && !wasOpen.current && document.activeElement instanceof HTMLElement) {
    opener.current = document.activeElement;
  }
  wasOpen.current = open;
  return opener;
}

/** Moves focus into the dialog if it is outside: a dialog that this one replaces returns focus to the page when it closes. */
function useFocusInside(open: boolean): RefObject<HTMLDivElement | null> {
  const popup = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const frame = requestAnimationFrame(() => {
      if (!popup.current?.contains(document.activeElement)) initialFocusIn(popup.current)?.focus();
    });
    return () => cancelAnimationFrame(frame);
  }, [open]);
  return popup;
}
