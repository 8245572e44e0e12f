import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { type DeadLetter, deadLetter as deadLetterQuery, useReveal } from "~/api/dead-letter";
import { useFallbackInterval } from "~/api/live";
import { toFailure } from "~/api/problems";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/dead-letters";
import { Empty, IconButton, Loaded, Loading, State } from "~/ui";
import { shortType } from "../list/Row";
import { Actions } from "./Actions";
import styles from "./Detail.module.css";
import { ErrorSummary } from "./ErrorSummary";
import { Sections } from "./Sections";

export interface DetailProps {
  id: string;
  /** IDs of its neighbours in the list, if known. */
  before: string | undefined;
  after: string | undefined;
  /** Whether rows are selected. Shortcuts then act on the selection, not on this dead letter. */
  selecting: boolean;
  /** Opens another dead letter; undefined closes this one. */
  onGo(id: string | undefined): void;
  /** Called when the dead letter was requeued, discarded or deleted. */
  onSettled(): void;
}

/** All details of one dead letter. */
export function Detail(props: DetailProps) {
  const { id, selecting, onGo } = props;
  const query = useQuery({ ...deadLetterQuery(id), refetchInterval: useFallbackInterval() });
  const reveal = useReveal(id);
  const heading = useId();
  usePrefetch(props.after);
  useShortcuts(
    texts.deadLetterHeading,
    [{ keys: "Escape", label: texts.close, run: () => onGo(undefined) }],
    !selecting,
  );
  if (query.error && toFailure(query.error).code === "not_found")
    return <NotFound {...props} heading={heading} />;
  return (
    <section aria-labelledby={heading} className={styles.detail}>
      <Head {...props} heading={heading} deadLetter={query.data} />
      <Loaded query={query} loading={<Loading lines={10} />}>
        {(masked) => {
          // Revealed data belongs to one version. A newer version is masked again.
          const deadLetter =
            reveal.data?.version === masked.version ? withRevealed(reveal.data, masked) : masked;
          return (
            <>
              <Actions deadLetter={deadLetter} {...props} />
              <ErrorSummary deadLetter={deadLetter} />
              <Sections deadLetter={deadLetter} reveal={reveal} />
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

/** Loads the next dead letter in advance, so that it opens immediately. */
function usePrefetch(id: string | undefined): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (id !== undefined) void queries.prefetchQuery(deadLetterQuery(id));
  }, [queries, id]);
}

/** Merges the revealed data into the current state of the dead letter. */
function withRevealed(shown: DeadLetter, now: DeadLetter): DeadLetter {
  const { body, headers, properties, editions, error, failures, preview } = shown;
  return { ...now, body, headers, properties, editions, error, failures, preview, revealed: true };
}

function Head({
  id,
  deadLetter,
  heading,
  before,
  after,
  onGo,
}: DetailProps & { deadLetter: DeadLetter | undefined; heading: string }) {
  return (
    <header className={styles.head}>
      <Title id={heading}>
        {deadLetter ? shortType(deadLetter.error.type) : texts.deadLetterHeading}{" "}
        <span className={styles.id}>{id}</span>
      </Title>
      {deadLetter && <State of={deadLetter.status} />}
      <span className={styles.steps}>
        <IconButton
          icon="up"
          label={texts.previous}
          whyNot={before === undefined ? texts.firstOfPage : undefined}
          onClick={() => onGo(before)}
        />
        <IconButton
          icon="down"
          label={texts.next}
          whyNot={after === undefined ? texts.lastOfPage : undefined}
          onClick={() => onGo(after)}
        />
        <IconButton icon="cross" label={texts.close} onClick={() => onGo(undefined)} />
      </span>
    </header>
  );
}

/** The heading. Takes focus on narrow screens, where the list is hidden. */
function Title({ id, children }: { id: string; children: ReactNode }) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!window.matchMedia("(max-width: 1180px)").matches) return;
    title.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, []);
  return (
    <h2 id={id} ref={title} tabIndex={-1}>
      {children}
    </h2>
  );
}

function NotFound({ id, heading, onGo, ...props }: DetailProps & { heading: string }) {
  return (
    <section aria-labelledby={heading} className={styles.detail}>
      <Head {...props} id={id} onGo={onGo} deadLetter={undefined} heading={heading} />
      <Empty title={texts.notFound(id)}>{texts.notFoundHint}</Empty>
    </section>
  );
}
