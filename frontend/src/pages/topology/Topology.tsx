import { type Topology as TopologyData, useTopology } from "~/api/topology";
import { choice, flag, text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/topology";
import { AsOf, Empty, Loaded, Loading, Page, Panel, Switch, Tabs } from "~/ui";
import { Availability } from "./Availability";
import { Diagram } from "./Diagram";
import { canFold } from "./folds";
import { QueueList } from "./QueueList";
import { SelectedNode } from "./SelectedNode";
import styles from "./Topology.module.css";
import { useWideScreen } from "./useWideScreen";
import { Warnings } from "./Warnings";

const PARAMETERS = { view: choice(["drawing", "list"], "drawing"), node: text, all: flag };
const VIEWS = [
  { value: "drawing", label: texts.drawing },
  { value: "list", label: texts.list },
] as const;

/** The topology: warnings first, then a diagram or a list. */
export default function Topology() {
  const query = useTopology();
  const wide = useWideScreen();
  return (
    <Page title={texts.title} wide aside={query.data && <AsOf at={query.dataUpdatedAt} />}>
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(topology) => (
          <>
            <Availability topology={topology} />
            <Warnings of={topology} />
            {topology.nodes.length === 0 ? (
              <Empty title={texts.empty}>{texts.emptyHint}</Empty>
            ) : wide ? (
              <Views topology={topology} />
            ) : (
              <Panel title={texts.queues}>
                <QueueList of={topology} />
              </Panel>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Views({ topology }: { topology: TopologyData }) {
  const [{ view, node, all }, change] = useUrlState(PARAMETERS);
  const chosen = topology.nodes.find(({ id }) => id === node);
  function close() {
    change({ node: undefined });
    document.getElementById("page-title")?.focus({ preventScroll: true });
  }
  return (
    <Tabs
      label={texts.views}
      tabs={VIEWS}
      value={view}
      onChoose={(to) => change({ view: to }, { replace: true })}
    >
      {view === "list" ? (
        <QueueList of={topology} />
      ) : (
        <div className={styles.drawn} data-chosen={chosen !== undefined || undefined}>
          <div>
            <div className={styles.legend}>
              <span>{counts(topology)}</span>
              {canFold(topology) && (
                <Switch
                  label={texts.showAll}
                  checked={all}
                  onChange={(on) => change({ all: on }, { replace: true })}
                />
              )}
            </div>
            <Diagram
              topology={topology}
              unfolded={all}
              chosen={node}
              onChoose={(id) => change({ node: id }, { replace: true })}
            />
          </div>
          {chosen && <SelectedNode node={chosen} topology={topology} onClose={close} />}
        </div>
      )}
    </Tabs>
  );
}

function counts({ nodes }: TopologyData): string {
  const of = (kind: string) => nodes.filter((node) => node.kind === kind).length;
  return [
    texts.exchangesCount(of("exchange")),
    texts.queuesCount(of("queue")),
    texts.workersCount(of("worker")),
  ].join(", ");
}
