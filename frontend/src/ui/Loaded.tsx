import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { useLocation, useSearch } from "wouter";
import { Failure } from "~/api/problems";
import * as texts from "~/texts/ui";
import { announce } from "./announce";
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
  const isLost = useFirstPageInstead(error);
  return (
    <>
      {error && !isLost && <Problem of={error} onRetry={() => void refetch()} />}
      {data !== undefined ? children(data) : (!error || isLost) && loading}
    </>
  );
}

/** An address of a page that is not there, such as one of other filters, becomes that of the first one. */
function useFirstPageInstead(error: unknown): boolean {
  const [path, navigate] = useLocation();
  const search = useSearch();
  const isLost = error instanceof Failure && ["invalid_cursor", "cursor_mismatch"].includes(error.code);
  useEffect(() => {
    const parameters = new URLSearchParams(search);
    if (!isLost || !parameters.has("cursor")) return;
    parameters.delete("cursor");
    navigate(parameters.size > 0 ? `${path}?${parameters}` : path, { replace: true });
    announce(texts.pageNotFound);
  }, [isLost, navigate, path, search]);
  return isLost;
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
