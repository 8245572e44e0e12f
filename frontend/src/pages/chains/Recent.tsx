import { useQuery } from "@tanstack/react-query";
import { type RefObject, useMemo, useRef } from "react";
import { type ChainSummary, chainList, LISTED_STATES } from "~/api/chains";
import { useFallbackInterval } from "~/api/live";
import { useShortcuts } from "~/lib/keyboard";
import { useStableList } from "~/lib/stable-list";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/chains";
import { AsOf, Button, Empty, Loaded, Page, Pager, Panel, stateStyle } from "~/ui";
import { type Filter, FilterBar } from "~/ui/filters";
import { recentChains } from "./address";
import { RecentTable } from "./RecentTable";
import { Search } from "./Search";

const STATES = LISTED_STATES.map((state) => [state, stateStyle(state).label] as const);

/** The most recent chains, and a search for any chain by ID. */
export function Recent() {
  const state = useUrlState(recentChains);
  const [{ state: worst, routing_key, sent_after, sent_before, cursor }, change] = state;
  const options = chainList({ state: worst, routing_key, sent_after, sent_before }, cursor);
  const query = useQuery({ ...options, refetchInterval: useFallbackInterval() });
  const { data, isPlaceholderData } = query;
  const scope = JSON.stringify(options.queryKey);
  const stable = useStableList(isPlaceholderData ? undefined : data?.items, scope, idOf);
  const shown = isPlaceholderData ? (data?.items ?? []) : stable.items;
  const filtered = [worst, routing_key, sent_after, sent_before].some((value) => value !== undefined);
  const table = useRef<HTMLDivElement>(null);
  useRowKeys(table);
  return (
    <Page title={texts.title} actions={<Search keys="i" />}>
      <p>{texts.introduction}</p>
      <FilterBar
        label={texts.filter}
        filters={useFilters(shown)}
        state={state}
        extraChanges={{ cursor: undefined }}
      />
      <Panel
        title={texts.recent}
        flush
        aside={
          <>
            {!isPlaceholderData && stable.fresh > 0 && (
              <Button icon="up" onClick={stable.show}>
                {texts.fresh(stable.fresh)}
              </Button>
            )}
            {data && <AsOf at={query.dataUpdatedAt} />}
          </>
        }
      >
        <div ref={table} aria-busy={isPlaceholderData}>
          <Loaded query={query}>
            {(page) =>
              shown.length > 0 ? (
                <RecentTable chains={shown} />
              ) : (
                <EmptyList filtered={filtered} hasMore={page.next !== null} />
              )
            }
          </Loaded>
        </div>
      </Panel>
      {data && (
        <Pager
          shown={shown.length}
          next={data.next}
          previous={data.previous}
          busy={isPlaceholderData}
          onPageChange={(to) => change({ cursor: to })}
        />
      )}
    </Page>
  );
}

function idOf({ root_id }: ChainSummary): string {
  return root_id;
}

function useFilters(
  shown: readonly ChainSummary[],
): readonly Filter<"state" | "routing_key" | "sent_after" | "sent_before">[] {
  return useMemo(() => {
    const keys = [...new Set(shown.map(({ routing_key }) => routing_key))].sort();
    return [
      { kind: "choice", name: "state", label: texts.status, options: STATES },
      {
        kind: "text",
        name: "routing_key",
        label: texts.firstRoutingKey,
        suggestions: keys,
        hint: texts.firstRoutingKeyHint,
        first: true,
      },
      { kind: "time", name: "sent_after", label: texts.startedAfter },
      { kind: "time", name: "sent_before", label: texts.startedBefore },
    ];
  }, [shown]);
}

/** Moves focus between the chains with `j` and `k`. The focused element is a link, so Enter opens it. */
function useRowKeys(table: RefObject<HTMLElement | null>): void {
  function step(by: number) {
    const links = [...(table.current?.querySelectorAll<HTMLElement>("tbody th a") ?? [])];
    const at = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
    links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  }
  useShortcuts(texts.title, [
    { keys: "j", label: texts.nextChain, run: () => step(1) },
    { keys: "k", label: texts.previousChain, run: () => step(-1) },
  ]);
}

function EmptyList({ filtered, hasMore }: { filtered: boolean; hasMore: boolean }) {
  if (hasMore) {
    return <Empty title={texts.noMatchHere}>{texts.noMatchHereHint}</Empty>;
  }
  if (filtered) return <Empty title={texts.noMatch}>{texts.noMatchHint}</Empty>;
  return <Empty title={texts.empty}>{texts.emptyHint}</Empty>;
}
