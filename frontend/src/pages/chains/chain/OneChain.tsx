import { useEffect, useMemo, useRef } from "react";
import { Link } from "wouter";
import { type Chain, INITIAL_LIMIT, MAX_LIMIT, useChain } from "~/api/chains";
import { toFailure } from "~/api/problems";
import { useShortcuts } from "~/lib/keyboard";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/chains";
import { Empty, Loaded, Page, State, Tabs } from "~/ui";
import { oneChain, type View } from "../address";
import { Search } from "../Search";
import { ChainTable } from "./ChainTable";
import { Detail } from "./Detail";
import { Notices } from "./Notices";
import styles from "./OneChain.module.css";
import { ROOTS } from "./rows";
import { Summary } from "./Summary";
import { TreeView } from "./TreeView";
import type { Item, Tree } from "./tree";
import { type ChainHandlers, useChainView } from "./view";
import { Waterfall } from "./Waterfall";

/** A chain, looked up by the ID of any of its messages. */
export default function OneChain({ id }: { id: string }) {
  const [{ all }] = useUrlState(oneChain);
  const query = useChain(id, all ? MAX_LIMIT : INITIAL_LIMIT);
  const { data } = query;
  const first = data?.nodes.find((message) => message.id === data.root_id);
  return (
    <Page
      title={first?.routing_key ? texts.chainOf(first.routing_key) : texts.chain}
      aside={
        <>
          {data && <State of={data.state} />}
          <Link href="/chains">{texts.allChains}</Link>
        </>
      }
      actions={<Search />}
      wide
    >
      {query.error && toFailure(query.error).code === "not_found" ? (
        <Empty title={texts.notFound}>
          {texts.notFoundHint} <code className={styles.id}>{id}</code>
          {texts.notFoundHistory}
        </Empty>
      ) : (
        <Loaded query={query}>
          {(chain) => <LoadedChain chain={chain} lookedUpId={id} readAt={query.dataUpdatedAt} />}
        </Loaded>
      )}
    </Page>
  );
}

const VIEWS: readonly { value: View; label: string }[] = [
  { value: "waterfall", label: texts.waterfall },
  { value: "tree", label: texts.tree },
  { value: "table", label: texts.table },
];

function LoadedChain({ chain, lookedUpId, readAt }: { chain: Chain; lookedUpId: string; readAt: number }) {
  const [{ view, sort, down, page }, change] = useUrlState(oneChain);
  const chainView = useChainView(chain, readAt);
  const handlers = useChainHandlers(chainView.tree);
  const selected = handlers.selected === undefined ? undefined : chainView.tree.byId.get(handlers.selected);
  const drawing = useRef<HTMLElement>(null);
  // In a narrow window the details are a sheet over the page, which must not cover the message that they are about.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each selection
  useEffect(() => {
    drawing.current?.querySelector("[data-selected]")?.scrollIntoView?.({ block: "nearest" });
  }, [handlers.selected]);
  function close() {
    handlers.choose(undefined);
    drawing.current
      ?.querySelector<HTMLElement>("[role=tree], [aria-pressed=true]")
      ?.focus({ preventScroll: true });
  }
  useShortcuts(texts.chain, [
    { keys: "v", label: texts.nextView, run: () => change({ view: nextView(view) }, { replace: true }) },
    ...(selected ? [{ keys: "Escape", label: texts.closeMessage, run: close }] : []),
  ]);
  return (
    <>
      <Summary chain={chain} tree={chainView.tree} extent={chainView.extent} />
      <Notices chain={chain} tree={chainView.tree} lookedUpId={lookedUpId} choose={handlers.choose} />
      <div className={styles.content} data-detail={selected ? true : undefined}>
        <section ref={drawing} className={styles.drawing} aria-labelledby="messages">
          <h2 id="messages" className="unseen">
            {texts.messages}
          </h2>
          <Tabs label={texts.views} tabs={VIEWS} value={view} onChoose={(next) => change({ view: next })}>
            {view === "waterfall" && <Waterfall chainView={chainView} handlers={handlers} />}
            {view === "tree" && <TreeView chainView={chainView} handlers={handlers} />}
            {view === "table" && (
              <ChainTable
                chainView={chainView}
                handlers={handlers}
                order={{ by: sort, down, page: page ?? 1, change }}
              />
            )}
          </Tabs>
        </section>
        {selected && (
          <Detail
            item={selected}
            isLookedUp={selected.message.id === lookedUpId}
            choose={handlers.choose}
            close={close}
          />
        )}
      </div>
    </>
  );
}

function nextView(view: View): View {
  const at = VIEWS.findIndex(({ value }) => value === view);
  return VIEWS[(at + 1) % VIEWS.length]?.value ?? view;
}

/** The selection and the collapsed messages, kept in the URL. */
function useChainHandlers(tree: Tree): ChainHandlers {
  const [{ node, open, shut }, change] = useUrlState(oneChain);
  return useMemo(() => {
    const selected = node !== undefined && tree.byId.has(node) ? node : undefined;
    return {
      folding: { open, shut, shown: selected },
      selected,
      choose: (id, replace = false) => change({ node: id }, { replace }),
      toggle(row) {
        if (row.kind === "fold") {
          change({ open: toggled(open, row.parent?.message.id ?? ROOTS) }, { replace: true });
        } else if (row.kind === "message" && row.unfolded !== undefined) {
          const { id } = row.item.message;
          const chosen = selected === undefined ? undefined : tree.byId.get(selected);
          // Collapsing would hide the selected message, so the selection moves to the collapsed one.
          const covered = row.unfolded && chosen !== row.item && chosen && isDescendant(chosen, row.item);
          change(
            { shut: withOrWithout(shut, id, row.unfolded), ...(covered ? { node: id } : {}) },
            { replace: true },
          );
        }
      },
    };
  }, [tree, node, open, shut, change]);
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return withOrWithout(ids, id, !ids.has(id));
}

function withOrWithout(ids: ReadonlySet<string>, id: string, wanted: boolean): ReadonlySet<string> {
  const next = new Set(ids);
  if (wanted) next.add(id);
  else next.delete(id);
  return next;
}

function isDescendant(item: Item, ancestor: Item): boolean {
  for (let at = item.parent; at !== undefined; at = at.parent) if (at === ancestor) return true;
  return false;
}
