import { Link, useSearch } from "wouter";
import { WAITING } from "~/api/waiting";
import { useShortcuts } from "~/lib/keyboard";
import { Changes } from "~/pages/waiting/Changes";
import * as texts from "~/texts/messages";
import { stateMeanings } from "~/texts/state-meanings";
import * as waitingTexts from "~/texts/waiting";
import { AsOf, Button, Empty, Loaded, Loading, Pager, stateStyle } from "~/ui";
import type { Place } from "../parameters";
import styles from "./List.module.css";
import { Row, rowOf } from "./Row";
import type { Listed } from "./useList";

/** A page of messages. `j` and `k` go through them, and update the side panel. */
export function List({
  list,
  place,
  open,
  onOpen,
  onPageChange,
}: {
  list: Listed;
  place: Place;
  open: string | undefined;
  onOpen(id: string): void;
  onPageChange(cursor: string | undefined): void;
}) {
  const { query, held, turning } = list;
  const search = useSearch();
  function step(by: 1 | -1) {
    const from = open ?? document.activeElement?.getAttribute("data-row") ?? undefined;
    const to = from === undefined ? held.items[0]?.id : list.neighbour(from, by);
    if (to === undefined) return;
    if (open !== undefined) onOpen(to);
    rowOf(to)?.focus();
  }
  useShortcuts(texts.title, [
    { keys: "j", label: texts.next, run: () => step(1) },
    { keys: "k", label: texts.previous, run: () => step(-1) },
  ]);
  return (
    <Loaded query={query} loading={<Loading lines={8} />}>
      {({ next, previous }) => (
        <div className={styles.list} aria-busy={turning}>
          <div className={styles.facts}>
            <AsOf at={query.dataUpdatedAt} />
            {held.fresh > 0 && (
              <Button look="quiet" icon="down" onClick={held.show}>
                {texts.fresh(held.fresh)}
              </Button>
            )}
            <Bulk place={place} />
          </div>
          {held.items.length === 0 ? (
            <Nothing place={place} narrowed={list.narrowed} />
          ) : (
            <ul className={styles.rows} data-turning={turning || undefined} aria-label={texts.title}>
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
          <Pager
            shown={held.items.length}
            next={next}
            previous={previous}
            onPageChange={onPageChange}
            busy={turning}
          />
        </div>
      )}
    </Loaded>
  );
}

/** Changes of all that fit the filters, where a state is chosen in which messages wait. */
function Bulk({ place: { cursor: _, state, ...filters } }: { place: Place }) {
  const waiting = WAITING.find((each) => each === state);
  if (waiting === undefined) return null;
  const send = { action: "send_now", label: waitingTexts.sendAllNow } as const;
  const cancel = { action: "cancel", label: waitingTexts.cancelAll } as const;
  return (
    <Changes
      target={{ filter: { ...filters, state: waiting } }}
      choices={waiting === "pending" ? [cancel] : [send, cancel]}
    />
  );
}

function Nothing({ place, narrowed }: { place: Place; narrowed: boolean }) {
  if (narrowed) {
    return (
      <Empty title={texts.noMatch}>
        {texts.noMatchHint} <Link href="/chains">{texts.chains}</Link> .
      </Empty>
    );
  }
  if (place.state === undefined) {
    return (
      <Empty title={texts.empty}>
        {texts.emptyHint} <Link href="/chains">{texts.chains}</Link>.
      </Empty>
    );
  }
  if (place.state === "sent") {
    return (
      <Empty title={texts.noSent}>
        {texts.noSentHint} <Link href="/chains">{texts.chains}</Link>.
      </Empty>
    );
  }
  return (
    <Empty title={texts.noneWithStatus(stateStyle(place.state).label)}>
      {texts.statusMeaning(stateStyle(place.state).label, stateMeanings[place.state] ?? "")}
    </Empty>
  );
}
