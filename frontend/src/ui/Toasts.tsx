import { Toast } from "@base-ui/react/toast";
import { useEffect } from "react";
import { Link } from "wouter";
import * as texts from "~/texts/ui";
import { pendingAnnouncements } from "./announce";
import styles from "./announcements.module.css";
import { IconButton } from "./Button";
import { Icon } from "./icons";

type ToastData = { result: string | undefined };
const manager = Toast.createToastManager<ToastData>();

/** Shows announcements, including those made before this component loaded. */
export default function Toasts() {
  useEffect(() => {
    showPending();
    return pendingAnnouncements.subscribe(showPending);
  }, []);
  return (
    <Toast.Provider toastManager={manager} limit={3}>
      <Toast.Portal>
        <Toast.Viewport className={styles.viewport ?? ""}>
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function showPending(): void {
  const pending = pendingAnnouncements.get();
  if (pending.length === 0) return;
  pendingAnnouncements.set([]);
  for (const { text, tone, result } of pending) {
    manager.add({
      description: text,
      type: tone,
      timeout: tone === "bad" ? 0 : result ? 10_000 : 5_000,
      priority: tone === "bad" ? "high" : "low",
      data: { result },
    });
  }
}

function ToastList() {
  const { toasts } = Toast.useToastManager<ToastData>();
  return toasts.map((toast) => (
    // The library announces failures in a separate alert and hides the toast. It must stay reachable, but not be read twice.
    <Toast.Root
      key={toast.id}
      toast={toast}
      aria-hidden={false}
      aria-live={toast.type === "bad" ? "off" : undefined}
      className={styles.toast ?? ""}
      data-tone={toast.type}
    >
      <Icon name={toast.type === "bad" ? "dead" : "check"} />
      <div className={styles.text}>
        <Toast.Description />
        {toast.data?.result && (
          <Link href={toast.data.result} onClick={() => manager.close(toast.id)}>
            {texts.showResult}
          </Link>
        )}
      </div>
      <Toast.Close aria-hidden={false} render={<IconButton icon="cross" label={texts.dismiss} />} />
    </Toast.Root>
  ));
}
