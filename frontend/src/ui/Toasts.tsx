import { Toast } from "@base-ui/react/toast";
import { useEffect } from "react";
import { Link } from "wouter";
import * as texts from "~/texts/ui";
import { announced } from "./announce";
import styles from "./announcements.module.css";
import { IconButton } from "./Button";
import { Icon } from "./icons";

type Shows = { result: string | undefined };
const manager = Toast.createToastManager<Shows>();

/** Shows announcements, also those that were made before it was there. */
export default function Toasts() {
  useEffect(() => {
    show();
    return announced.subscribe(show);
  }, []);
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

function show(): void {
  const news = announced.get();
  if (news.length === 0) return;
  announced.set([]);
  for (const { text, tone, result } of news) {
    manager.add({
      description: text,
      type: tone,
      timeout: tone === "bad" ? 0 : result ? 10_000 : 5_000,
      priority: tone === "bad" ? "high" : "low",
      data: { result },
    });
  }
}

function Shown() {
  const { toasts } = Toast.useToastManager<Shows>();
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
