// What happened, said once at the edge of the screen and to screen readers. One at a time, and never the same twice in a row.

import { Toast } from "@base-ui/react/toast";
import { Link } from "wouter";
import * as texts from "~/texts/ui";
import styles from "./announcements.module.css";
import { IconButton } from "./Button";
import { Icon } from "./icons";

const manager = Toast.createToastManager<{ result: string | undefined }>();
let last = { text: "", at: 0 };

/**
 * Says something. Failures stay until they are closed; the same text again within two seconds is not repeated. `result` is
 * the address of what came of it.
 */
export function announce(text: string, tone: "good" | "bad" = "good", result?: string): void {
  const now = Date.now();
  if (text === last.text && now - last.at < 2_000) return;
  last = { text, at: now };
  manager.add({
    description: text,
    type: tone,
    timeout: tone === "bad" ? 0 : result ? 10_000 : 5_000,
    data: { result },
    priority: tone === "bad" ? "high" : "low",
  });
}

export function Announcements() {
  return (
    <Toast.Provider toastManager={manager} limit={3}>
      <Toast.Portal>
        <Toast.Viewport className={styles.viewport ?? ""}>
          <Shown />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function Shown() {
  const { toasts } = Toast.useToastManager<{ result: string | undefined }>();
  return toasts.map((toast) => (
    // Failures are read out by an alert of their own, which is why they would be hidden here and said no second time.
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
