import { Link, useSearch } from "wouter";
import { failureOf } from "~/api/problems";
import { number } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import { Button, Empty, Loaded, Loading, lookOf, Pager, ShownAge } from "~/ui";
import type { Place } from "../parameters";
import styles from "./List.module.css";
import { Row, rowOf } from "./Row";
import type { Listed } from "./useList";

/** A page of messages. `j` and `k` go through them, and take along what is open beside. */
export function List({
  list,
  place,
  open,
  onOpen,
  onTurn,
}: {
  list: Listed;
  place: Place;
  open: string | undefined;
  onOpen(id: string): void;
  onTurn(cursor: string | undefined): void;
}) {
  const { query, held, turning } = list;
  const search = useSearch();
  function step(by: 1 | -1) {
    const from = open ?? document.activeElement?.getAttribute("data-row") ?? undefined;
    const to = from === undefined ? held.items[0]?.id : list.beside(from, by);
    if (to === undefined) return;
    if (open !== undefined) onOpen(to);
    rowOf(to)?.focus();
  }
  useShortcuts("Messages", [
    { keys: "j", label: "Next message", run: () => step(1) },
    { keys: "k", label: "Previous message", run: () => step(-1) },
  ]);
  const lost = query.error && ["invalid-cursor", "cursor-mismatch"].includes(failureOf(query.error).code);
  if (lost) return <LostPlace onFirst={() => onTurn(undefined)} />;
  return (
    <Loaded query={query} loading={<Loading lines={8} />}>
      {({ next, previous }) => (
        <div className={styles.list} aria-busy={turning}>
          <div className={styles.facts}>
            <ShownAge at={query.dataUpdatedAt} />
            {held.fresh > 0 && (
              <Button look="quiet" icon="down" onClick={held.show}>
                {number(held.fresh)} new, show
              </Button>
            )}
          </div>
          {held.items.length === 0 ? (
            <Nothing place={place} narrowed={list.narrowed} />
          ) : (
            <ul className={styles.rows} data-turning={turning || undefined} aria-label="Messages">
              {held.items.map((line) => (
                <Row
                  key={line.id}
                  line={line}
                  search={search}
                  open={line.id === open}
                  gone={held.gone.has(line.id)}
                />
              ))}
            </ul>
          )}
          <Pager shown={held.items.length} next={next} previous={previous} onTurn={onTurn} busy={turning} />
        </div>
      )}
    </Loaded>
  );
}

function LostPlace({ onFirst }: { onFirst(): void }) {
  return (
    <>
      <Empty title="This page of the list cannot be found.">
        Its address belongs to another filter, or is incomplete.
      </Empty>
      <Button onClick={onFirst}>Go to the first page</Button>
    </>
  );
}

function Nothing({ place, narrowed }: { place: Place; narrowed: boolean }) {
  if (narrowed) {
    return (
      <Empty title="No message fits these filters.">
        What was sent is deleted; the <Link href="/chains">chains</Link> may still know it. Take a filter
        away, or look in another state.
      </Empty>
    );
  }
  if (place.state === undefined) {
    return (
      <Empty title="The outbox is empty.">
        Everything that was published has been sent. What became of it is among the{" "}
        <Link href="/chains">chains</Link>.
      </Empty>
    );
  }
  if (place.state === "sent") {
    return (
      <Empty title="No sent message is kept.">
        The service deletes a message once the broker has confirmed it, unless it is set to keep it for a
        while. What became of it is among the <Link href="/chains">chains</Link>.
      </Empty>
    );
  }
  return (
    <Empty title={`No message is ${lookOf(place.state).label}.`}>
      {`In this state: ${lookOf(place.state).meaning}`}
    </Empty>
  );
}
