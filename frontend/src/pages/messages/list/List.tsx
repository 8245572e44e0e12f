import { Link, useSearch } from "wouter";
import { WAITING } from "~/api/waiting";
import { useShortcuts } from "~/lib/keyboard";
import { Changes } from "~/pages/waiting/Changes";
import * as texts from "~/texts/messages";
import { stateMeanings } from "~/texts/state-meanings";
import * as waitingTexts from "~/texts/waiting";
import { AsOf, Button, Empty, Loaded, Loading, Pager, stateStyle } from "~/ui";
import type { UrlState } from "../parameters";
import styles from "./List.module.css";
import { Row, rowOf } from "./Row";
import type { Listed } from "./useList";

/** A page of messages. `j` and `k` move through them and update the side panel. */
export function List({
  list,
  urlState,
  open,
  onOpen,
  onPageChange,
}: {
  list: Listed;
  urlState: UrlState;
  open: string | undefined;
  onOpen(id: string): void;
  onPageChange(cursor: string | undefined): void;
}) {
  const { query, stable, stale } = list;
  const search = useSearch();
  function step(by: 1 | -1) {
    const from = open ?? document.activeElement?.getAttribute("data-row") ?? undefined;
    const to = from === undefined ? stable.items[0]?.id : list.neighbour(from, by);
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
        <div className={styles.list} aria-busy={stale}>
          <div className={styles.facts}>
            <AsOf at={query.dataUpdatedAt} />
            {stable.fresh > 0 && (
              <Button look="quiet" icon="down" onClick={stable.show}>
                {texts.fresh(stable.fresh)}
              </Button>
            )}
            <BulkChanges urlState={urlState} />
          </div>
          {stable.items.length === 0 ? (
            <EmptyMessages urlState={urlState} narrowed={list.narrowed} />
          ) : (
            <ul className={styles.rows} data-stale={stale || undefined} aria-label={texts.title}>
              {stable.items.map((line) => (
                <Row
                  key={line.id}
                  line={line}
                  search={search}
                  open={line.id === open}
                  gone={stable.gone.has(line.id)}
                />
              ))}
            </ul>
          )}
          <Pager
            shown={stable.items.length}
            next={next}
            previous={previous}
            onPageChange={onPageChange}
            busy={stale}
          />
        </div>
      )}
    </Loaded>
  );
}

/** Changes to all messages that match the filters. Only for states in which messages wait. */
function BulkChanges({ urlState: { cursor: _, state, ...filters } }: { urlState: UrlState }) {
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

function EmptyMessages({ urlState, narrowed }: { urlState: UrlState; narrowed: boolean }) {
  if (narrowed) {
    return (
      <Empty title={texts.noMatch}>
        {texts.noMatchHint} <Link href="/chains">{texts.chains}</Link>.
      </Empty>
    );
  }
  if (urlState.state === undefined) {
    return (
      <Empty title={texts.empty}>
        {texts.emptyHint} <Link href="/chains">{texts.chains}</Link>.
      </Empty>
    );
  }
  if (urlState.state === "sent") {
    return (
      <Empty title={texts.noSent}>
        {texts.noSentHint} <Link href="/chains">{texts.chains}</Link>.
      </Empty>
    );
  }
  return (
    <Empty title={texts.noneWithStatus(stateStyle(urlState.state).label)}>
      {texts.statusMeaning(stateStyle(urlState.state).label, stateMeanings[urlState.state] ?? "")}
    </Empty>
  );
}
