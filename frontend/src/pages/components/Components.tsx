import { useState } from "react";
import { type Component, useComponents } from "~/api/components";
import type { Pause, Target } from "~/api/pauses";
import { useWhyNot } from "~/api/session";
import { plural } from "~/lib/format";
import { useHeld } from "~/lib/held";
import { useShortcuts } from "~/lib/keyboard";
import { choice, text, useUrlState } from "~/lib/url-state";
import { Button, Empty, Loaded, Loading, Page, ShownAge, Tabs } from "~/ui";
import styles from "./Components.module.css";
import { ComponentTable } from "./ComponentTable";
import type { Pausing } from "./Detail";
import { inOrder, summary } from "./doing";
import { PauseDialog } from "./PauseDialog";
import { Pauses } from "./Pauses";
import { ResumeDialog } from "./ResumeDialog";

const KINDS = ["all", "relay", "worker", "archiver", "maintenance"] as const;
const NAMES = {
  all: "All",
  relay: "Relays",
  worker: "Workers",
  archiver: "Archivers",
  maintenance: "Maintenance",
};
const PARAMETERS = { kind: choice(KINDS, "all"), open: text };
const NOBODY: Target = { scope: "relay", name: "" };
const idOf = ({ id }: Component) => id;

/** Who lives, what each of them does, and what is paused. */
export default function Components() {
  const query = useComponents();
  const whyNot = useWhyNot("pause");
  const [pausing, setPausing] = useState<Target>();
  const [resuming, setResuming] = useState<Pause>();
  useShortcuts("Components", [
    { keys: "p", label: "Pause a relay, worker or queue", run: () => !whyNot && setPausing(NOBODY) },
  ]);
  return (
    <Page
      title="Components"
      beside={query.data && <Standing all={query.data.items} at={query.dataUpdatedAt} />}
      actions={
        <Button icon="pause" whyNot={whyNot} onClick={() => setPausing(NOBODY)}>
          Pause something …
        </Button>
      }
    >
      <Loaded query={query} loading={<Loading lines={6} />}>
        {({ items, pauses }) => (
          <>
            <Pauses pauses={pauses} onResume={setResuming} />
            <Listed items={items} pauses={pauses} onPause={setPausing} onResume={setResuming} />
          </>
        )}
      </Loaded>
      {pausing && (
        <PauseDialog
          target={pausing}
          components={query.data?.items ?? []}
          onClose={() => setPausing(undefined)}
        />
      )}
      {resuming && <ResumeDialog pause={resuming} onClose={() => setResuming(undefined)} />}
    </Page>
  );
}

function Standing({ all, at }: { all: readonly Component[]; at: number }) {
  return (
    <span className={styles.standing}>
      {summary(all)} · <ShownAge at={at} />
    </span>
  );
}

function Listed({ items, ...pausing }: Pausing & { items: readonly Component[] }) {
  const [{ kind, open }, change] = useUrlState(PARAMETERS);
  const those = items.filter((one) => kind === "all" || one.kind === kind);
  const held = useHeld(inOrder(those), kind, idOf);
  return (
    <Tabs
      label="Kinds of components"
      value={kind}
      onChoose={(chosen) => change({ kind: chosen, open: undefined })}
      tabs={KINDS.map((value) => ({
        value,
        label: NAMES[value],
        count: String(value === "all" ? items.length : items.filter((one) => one.kind === value).length),
      }))}
    >
      {held.fresh > 0 && (
        <p className={styles.fresh}>
          <Button icon="down" onClick={held.show}>
            {plural(held.fresh, "new component")}, show
          </Button>
        </p>
      )}
      {held.items.length === 0 ? (
        <Nobody kind={kind} />
      ) : (
        <ComponentTable
          items={held.items}
          gone={held.gone}
          open={open}
          onOpen={(id) => change({ open: id }, { replace: true })}
          {...pausing}
        />
      )}
    </Tabs>
  );
}

function Nobody({ kind }: { kind: (typeof KINDS)[number] }) {
  if (kind === "archiver") {
    return (
      <Empty title="There is no archiver.">
        One is needed with RabbitMQ only, to take dead letters into the database: outbox archiver.
      </Empty>
    );
  }
  return (
    <Empty title={kind === "all" ? "Nobody has given a sign of life." : `There is no ${kind}.`}>
      Relays publish what is in the outbox, workers handle what arrives: outbox relay, outbox worker. Who
      ended is listed for a day.
    </Empty>
  );
}
