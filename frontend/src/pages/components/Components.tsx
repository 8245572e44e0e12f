import { useState } from "react";
import { type Component, useComponents } from "~/api/components";
import type { Pause, Target } from "~/api/pauses";
import { useWhyNot } from "~/api/session";
import { useShortcuts } from "~/lib/keyboard";
import { useStableList } from "~/lib/stable-list";
import { choice, text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/components";
import { AsOf, Button, Empty, Loaded, Loading, Page, Tabs } from "~/ui";
import { sortedComponents, summary } from "./activity";
import styles from "./Components.module.css";
import { ComponentTable } from "./ComponentTable";
import type { PauseActions } from "./PauseButton";
import { PauseDialog } from "./PauseDialog";
import { Pauses } from "./Pauses";
import { ResumeDialog } from "./ResumeDialog";

const KINDS = ["all", "relay", "worker", "archiver", "maintenance"] as const;
const NAMES = {
  all: texts.all,
  relay: texts.relays,
  worker: texts.workers,
  archiver: texts.archivers,
  maintenance: texts.maintenance,
};
const PARAMETERS = { kind: choice(KINDS, "all"), open: text };
const idOf = ({ id }: Component) => id;

/** The components with their status and activity, and the current pauses. */
export default function Components() {
  const query = useComponents();
  const whyNot = useWhyNot("pause");
  const [pausing, setPausing] = useState<Target | "any">();
  const [resuming, setResuming] = useState<Pause>();
  useShortcuts(texts.title, [
    { keys: "p", label: texts.pauseSomething, run: () => !whyNot && setPausing("any") },
  ]);
  return (
    <Page
      title={texts.title}
      aside={query.data && <StatusSummary all={query.data.items} at={query.dataUpdatedAt} />}
      actions={
        <Button icon="pause" whyNot={whyNot} onClick={() => setPausing("any")}>
          {texts.pauseButton}
        </Button>
      }
    >
      <Loaded query={query} loading={<Loading lines={6} />}>
        {({ items, pauses }) => (
          <>
            <Pauses pauses={pauses} onResume={setResuming} />
            <ComponentTabs items={items} pauses={pauses} onPause={setPausing} onResume={setResuming} />
          </>
        )}
      </Loaded>
      {pausing && (
        <PauseDialog
          target={pausing === "any" ? undefined : pausing}
          components={query.data?.items ?? []}
          onClose={() => setPausing(undefined)}
        />
      )}
      {resuming && <ResumeDialog pause={resuming} onClose={() => setResuming(undefined)} />}
    </Page>
  );
}

function StatusSummary({ all, at }: { all: readonly Component[]; at: number }) {
  return (
    <span className={styles.standing}>
      {summary(all)} · <AsOf at={at} />
    </span>
  );
}

function ComponentTabs({ items, ...pausing }: PauseActions & { items: readonly Component[] }) {
  const [{ kind, open }, change] = useUrlState(PARAMETERS);
  const ofKind = items.filter((one) => kind === "all" || one.kind === kind);
  const stable = useStableList(sortedComponents(ofKind), kind, idOf);
  return (
    <Tabs
      label={texts.kinds}
      value={kind}
      onChoose={(chosen) => change({ kind: chosen, open: undefined })}
      tabs={KINDS.map((value) => ({
        value,
        label: NAMES[value],
        count: String(value === "all" ? items.length : items.filter((one) => one.kind === value).length),
      }))}
    >
      {stable.fresh > 0 && (
        <p className={styles.fresh}>
          <Button icon="down" onClick={stable.show}>
            {texts.fresh(stable.fresh)}
          </Button>
        </p>
      )}
      {stable.items.length === 0 ? (
        <NoComponents kind={kind} />
      ) : (
        <ComponentTable
          items={stable.items}
          gone={stable.gone}
          open={open}
          onOpen={(id) => change({ open: id }, { replace: true })}
          {...pausing}
        />
      )}
    </Tabs>
  );
}

function NoComponents({ kind }: { kind: (typeof KINDS)[number] }) {
  if (kind === "archiver") {
    return <Empty title={texts.noArchiver}>{texts.noArchiverHint}</Empty>;
  }
  return <Empty title={kind === "all" ? texts.empty : texts.emptyKind(kind)}>{texts.emptyHint}</Empty>;
}
