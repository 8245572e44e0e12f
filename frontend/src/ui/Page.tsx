import { type ReactNode, useEffect } from "react";
import { outbox } from "~/lib/mount";
import styles from "./Page.module.css";

export interface PageProps {
  title: string;
  /** Title of the browser tab, if it differs. */
  tab?: string;
  /** Next to the title: a badge, a link back. */
  aside?: ReactNode;
  /** The page's buttons. */
  actions?: ReactNode;
  /** Uses the full width and height, for lists with a side panel. */
  wide?: boolean;
  children: ReactNode;
}

/** A page with its `h1`, which receives focus after navigation, and the title of the browser tab. */
export function Page({ title, tab = title, aside, actions, wide = false, children }: PageProps) {
  useEffect(() => {
    document.title = outbox === undefined ? `${tab} · Outbox` : `${tab} · ${outbox} · Outbox`;
  }, [tab]);
  return (
    <div className={styles.page} data-wide={wide || undefined}>
      <header className={styles.head}>
        <h1 id="page-title" tabIndex={-1}>
          {title}
        </h1>
        {aside}
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}
