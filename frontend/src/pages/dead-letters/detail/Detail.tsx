import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { type DeadLetter, deadLetter, useReveal } from "~/api/dead-letter";
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
  /** Its neighbours in the list, where they are known. */
  before: string | undefined;
  after: string | undefined;
  /** Rows are selected: keys mean those, not this letter. */
  selecting: boolean;
  /** Opens another letter; none closes this one. */
  onGo(id: string | undefined): void;
  /** It was decided about. */
  onSettled(): void;
}

/** One dead letter with everything that is known of it. */
export function Detail(props: DetailProps) {
  const { id, selecting, onGo } = props;
  const query = useQuery({ ...deadLetter(id), refetchInterval: useFallbackInterval() });
  const reveal = useReveal(id);
  const heading = useId();
  usePrefetch(props.after);
  useShortcuts(
    texts.deadLetterHeading,
    [{ keys: "Escape", label: texts.close, run: () => onGo(undefined) }],
    !selecting,
  );
  if (query.error && toFailure(query.error).code === "not_found")
    return <Gone {...props} heading={heading} />;
  return (
    <section aria-labelledby={heading} className={styles.letter}>
      <Head {...props} heading={heading} letter={query.data} />
      <Loaded query={query} loading={<Loading lines={10} />}>
        {(masked) => {
          // what was revealed is of one version; another one is masked again
          const letter = reveal.data?.version === masked.version ? revealed(reveal.data, masked) : masked;
          return (
            <>
              <Actions letter={letter} {...props} />
              <ErrorSummary letter={letter} />
              <Sections letter={letter} reveal={reveal} />
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

/** The next one is there at once. */
function usePrefetch(id: string | undefined): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (id !== undefined) void queries.prefetchQuery(deadLetter(id));
  }, [queries, id]);
}

/** What was revealed, with what has become of the letter since. */
function revealed(shown: DeadLetter, now: DeadLetter): DeadLetter {
  const { body, headers, properties, editions, error, failures: trail, preview } = shown;
  return { ...now, body, headers, properties, editions, error, failures: trail, preview, revealed: true };
}

function Head({
  id,
  letter,
  heading,
  before,
  after,
  onGo,
}: DetailProps & { letter: DeadLetter | undefined; heading: string }) {
  return (
    <header className={styles.head}>
      <Title id={heading}>
        {letter ? shortType(letter.error.type) : texts.deadLetterHeading}{" "}
        <span className={styles.id}>{id}</span>
      </Title>
      {letter && <State of={letter.status} />}
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

/** The heading takes focus where the list it was opened from is out of sight. */
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

function Gone({ id, heading, onGo, ...props }: DetailProps & { heading: string }) {
  return (
    <section aria-labelledby={heading} className={styles.letter}>
      <Head {...props} id={id} onGo={onGo} letter={undefined} heading={heading} />
      <Empty title={texts.notFound(id)}>{texts.notFoundHint}</Empty>
    </section>
  );
}
