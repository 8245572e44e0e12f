import { type ReactNode, useEffect } from "react";
import styles from "./Page.module.css";

export interface PageProps {
  title: string;
  /** What the browser's tab says, where that is more than the title. */
  tab?: string;
  /** Beside the title: a badge, a link back. */
  beside?: ReactNode;
  /** The page's buttons. */
  actions?: ReactNode;
  /** Takes the whole width and height, for lists with details beside them. */
  wide?: boolean;
  children: ReactNode;
}

/** A page: one `h1`, a title for the tab, and where focus goes after a change of pages. */
export function Page({ title, tab = title, beside, actions, wide = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${tab} · Outbox`;
  }, [tab]);
  return (
    <div className={styles.page} data-wide={wide || undefined}>
      <header className={styles.head}>
        <h1 id="page-title" tabIndex={-1}>
          {title}
        </h1>
        {beside}
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}
