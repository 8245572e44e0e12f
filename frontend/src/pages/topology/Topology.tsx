import { type Topology as Drawn, useTopology } from "~/api/topology";
import { plural } from "~/lib/format";
import { choice, flag, text, useUrlState } from "~/lib/url-state";
import { Empty, Loaded, Loading, Page, Panel, ShownAge, Switch, Tabs } from "~/ui";
import { Away } from "./Away";
import { Chosen } from "./Chosen";
import { Drawing } from "./Drawing";
import { folds } from "./folding";
import { QueueList } from "./QueueList";
import styles from "./Topology.module.css";
import { useWide } from "./useWide";
import { Warnings } from "./Warnings";

const PARAMETERS = { view: choice(["drawing", "list"], "drawing"), node: text, all: flag };
const VIEWS = [
  { value: "drawing", label: "Drawing" },
  { value: "list", label: "List" },
] as const;

/** Where messages go: what is wrong first, then everything as a drawing, or as a list. */
export default function Topology() {
  const query = useTopology();
  const wide = useWide();
  return (
    <Page title="Topology" wide beside={query.data && <ShownAge at={query.dataUpdatedAt} />}>
      <Loaded query={query} loading={<Loading lines={8} />}>
        {(topology) => (
          <>
            <Away topology={topology} />
            <Warnings of={topology} />
            {topology.nodes.length === 0 ? (
              <Empty title="Nothing is known yet.">
                Exchanges and queues are shown once a relay or a worker has told of them.
              </Empty>
            ) : wide ? (
              <Views topology={topology} />
            ) : (
              <Panel title="Queues">
                <QueueList of={topology} />
              </Panel>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Views({ topology }: { topology: Drawn }) {
  const [{ view, node, all }, change] = useUrlState(PARAMETERS);
  const chosen = topology.nodes.find(({ id }) => id === node);
  return (
    <Tabs label="Views" tabs={VIEWS} value={view} onChoose={(to) => change({ view: to }, { replace: true })}>
      {view === "list" ? (
        <QueueList of={topology} />
      ) : (
        <div className={styles.drawn} data-chosen={chosen !== undefined || undefined}>
          <div>
            <div className={styles.legend}>
              <span>{counts(topology)}</span>
              {folds(topology) && (
                <Switch
                  label="Show every queue and worker by itself"
                  checked={all}
                  onChange={(on) => change({ all: on }, { replace: true })}
                />
              )}
            </div>
            <Drawing
              topology={topology}
              unfolded={all}
              chosen={node}
              onChoose={(id) => change({ node: id }, { replace: true })}
            />
          </div>
          {chosen && <Chosen node={chosen} topology={topology} onClose={() => change({ node: undefined })} />}
        </div>
      )}
    </Tabs>
  );
}

function counts({ nodes }: Drawn): string {
  const of = (kind: string) => nodes.filter((node) => node.kind === kind).length;
  return [
    plural(of("exchange"), "exchange"),
    plural(of("queue"), "queue"),
    plural(of("worker"), "worker"),
  ].join(", ");
}
