import type { UseQueryResult } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { useLocation, useSearch } from "wouter";
import { Failure } from "~/api/problems";
import * as texts from "~/texts/ui";
import { announce } from "./announce";
import styles from "./Loaded.module.css";
import { Problem } from "./Problem";

/** Whether the data are still those of other filters or of another page. */
export const Outdated = createContext(false);

/** Shows a query's data, a placeholder while it loads, or its error. Earlier data stays visible below an error. */
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
  const hasStaleCursor = useCursorRecovery(error);
  return (
    <>
      {error && !hasStaleCursor && <Problem of={error} onRetry={() => void refetch()} />}
      {data !== undefined ? (
        <Outdated value={query.isPlaceholderData}>{children(data)}</Outdated>
      ) : (
        (!error || hasStaleCursor) && loading
      )}
    </>
  );
}

/** Returns to the first page if the cursor in the URL is invalid or belongs to other filters. */
function useCursorRecovery(error: unknown): boolean {
  const [path, navigate] = useLocation();
  const search = useSearch();
  const hasStaleCursor =
    error instanceof Failure && ["invalid_cursor", "cursor_mismatch"].includes(error.code);
  useEffect(() => {
    const parameters = new URLSearchParams(search);
    if (!hasStaleCursor || !parameters.has("cursor")) return;
    parameters.delete("cursor");
    navigate(parameters.size > 0 ? `${path}?${parameters}` : path, { replace: true });
    announce(texts.pageNotFound);
  }, [hasStaleCursor, navigate, path, search]);
  return hasStaleCursor;
}

/** Placeholder lines for loading content. */
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

/** Empty state: what it means, and what to do. An earlier result that was empty says nothing about the one that loads. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  if (useContext(Outdated)) return <Loading />;
  return (
    <div className={styles.empty}>
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}
