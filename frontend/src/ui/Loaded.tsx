import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import * as texts from "~/texts/ui";
import styles from "./Loaded.module.css";
import { Problem } from "./Problem";

/** What a query answered; until then a place for it, and where it failed, why. An old answer stays in sight below a new failure. */
export function Loaded<T>({
  query,
  loading = <Loading />,
  children,
}: {
  query: UseQueryResult<T>;
  loading?: ReactNode;
  children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = query;
  return (
    <>
      {error && <Problem of={error} onRetry={() => void refetch()} />}
      {data !== undefined ? children(data) : !error && loading}
    </>
  );
}

/** Lines in the place of what is on its way. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div className={styles.loading} role="status">
      <span className="unseen">{texts.loading}</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are alike and never move
        <div key={line} className={styles.line} />
      ))}
    </div>
  );
}

/** There is nothing, which is an answer too: what that means, and what one may do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}
