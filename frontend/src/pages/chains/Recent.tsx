import { useQuery } from "@tanstack/react-query";
import { type RefObject, useMemo, useRef } from "react";
import { type Beginning, beginnings, LISTED_STATES } from "~/api/chains";
import { useFallbackInterval } from "~/api/live";
import { plural } from "~/lib/format";
import { useHeld } from "~/lib/held";
import { useShortcuts } from "~/lib/keyboard";
import { useUrlState } from "~/lib/url-state";
import { Button, Empty, Loaded, lookOf, Page, Pager, Panel, ShownAge } from "~/ui";
import { type Filter, FilterBar } from "~/ui/filters";
import { recentChains } from "./address";
import { RecentTable } from "./RecentTable";
import { Search } from "./Search";

const STATES = LISTED_STATES.map((state) => [state, lookOf(state).label] as const);

/** The chains that began last, and the way to any other by an id. */
export function Recent() {
  const state = useUrlState(recentChains);
  const [{ state: worst, routing_key, after, before, cursor }, change] = state;
  const options = beginnings({ state: worst, routing_key, after, before }, cursor);
  const query = useQuery({ ...options, refetchInterval: useFallbackInterval() });
  const { data, isPlaceholderData } = query;
  const scope = JSON.stringify(options.queryKey);
  const held = useHeld(isPlaceholderData ? undefined : data?.items, scope, idOf);
  const shown = isPlaceholderData ? (data?.items ?? []) : held.items;
  const filtered = [worst, routing_key, after, before].some((value) => value !== undefined);
  const table = useRef<HTMLDivElement>(null);
  useRowKeys(table);
  return (
    <Page title="Chains" actions={<Search keys="i" />}>
      <p>A chain is what one message set off: the messages that its handlers published, theirs, and so on.</p>
      <FilterBar
        label="Filter chains"
        filters={useFilters(shown)}
        state={state}
        also={{ cursor: undefined }}
      />
      <Panel
        title="Recent chains"
        flush
        aside={
          <>
            {!isPlaceholderData && held.fresh > 0 && (
              <Button icon="up" onClick={held.show}>
                {held.fresh} new, show
              </Button>
            )}
            {data && <ShownAge at={query.dataUpdatedAt} />}
          </>
        }
      >
        <div ref={table} aria-busy={isPlaceholderData}>
          <Loaded query={query}>
            {(page) =>
              shown.length > 0 ? (
                <RecentTable chains={shown} />
              ) : (
                <Nothing filtered={filtered} onward={page.next !== null} />
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
          onTurn={(to) => change({ cursor: to })}
        />
      )}
    </Page>
  );
}

function idOf({ root_id }: Beginning): string {
  return root_id;
}

function useFilters(
  shown: readonly Beginning[],
): readonly Filter<"state" | "routing_key" | "after" | "before">[] {
  return useMemo(() => {
    const keys = [...new Set(shown.map(({ routing_key }) => routing_key))].sort();
    return [
      { kind: "choice", name: "state", label: "Worst state", options: STATES },
      {
        kind: "text",
        name: "routing_key",
        label: "First routing key",
        suggestions: keys,
        hint: "The routing key of the first message, exactly.",
        first: true,
      },
      { kind: "time", name: "after", label: "Began after" },
      { kind: "time", name: "before", label: "Began before" },
    ];
  }, [shown]);
}

/** `j` and `k` go from chain to chain; Enter opens the one with focus, as it is a link. */
function useRowKeys(table: RefObject<HTMLElement | null>): void {
  function step(by: number) {
    const links = [...(table.current?.querySelectorAll<HTMLElement>("tbody th a") ?? [])];
    const at = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
    links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  }
  useShortcuts("Chains", [
    { keys: "j", label: "Next chain", run: () => step(1) },
    { keys: "k", label: "Previous chain", run: () => step(-1) },
  ]);
}

function Nothing({ filtered, onward }: { filtered: boolean; onward: boolean }) {
  if (onward) {
    return (
      <Empty title="None of the chains on this page fits.">
        One page looks at up to {plural(1_000, "chain")}. Older ones may fit: go on with “Older” below.
      </Empty>
    );
  }
  if (filtered) return <Empty title="No chain fits these filters.">Take one away to see more.</Empty>;
  return (
    <Empty title="The history knows of no chain yet.">
      Chains appear here once their first message was sent, as long as relays and workers keep the history on.
      Messages that are still in the outbox are found by their id.
    </Empty>
  );
}
