import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useConnection } from "~/api/live";
import { FAILURES_FIRST, type Item, itemsOf, type Operation } from "~/api/operations";
import { capital, number, plural } from "~/lib/format";
import { useHeld } from "~/lib/held";
import { maybe, text, useUrlState } from "~/lib/url-state";
import {
  Badge,
  Button,
  Empty,
  type IconName,
  Loaded,
  lookOf,
  Pager,
  Panel,
  State,
  Table,
  Tabs,
  type Tone,
} from "~/ui";
import styles from "./Items.module.css";

/** What came of the letters is read again so soon after the operation itself, whose numbers are to agree with it. */
const SOON = 1_000;

const PARAMETERS = { outcome: maybe(FAILURES_FIRST), cursor: text };

/** What came of each letter, by outcome, what failed first. `at`: when the operation was read, in milliseconds. */
export function Items({ of, at }: { of: Operation; at: number }) {
  const [{ outcome, cursor }, change] = useUrlState(PARAMETERS);
  const rests = useConnection() === "resting";
  const query = useQuery({
    ...itemsOf(of.id, outcome, cursor),
    refetchInterval: ({ state }) => (state.dataUpdatedAt < at && !rests ? SOON : false),
  });
  const shown = FAILURES_FIRST.filter((one) => one === outcome || (of.counts[one] ?? 0) > 0);
  const tabs = [
    { value: "all" as const, label: "All", count: number(of.total) },
    ...shown.map((one) => ({
      value: one,
      label: capital(lookOf(one).label),
      count: number(of.counts[one] ?? 0),
    })),
  ];
  const scope = query.isPlaceholderData ? "" : `${outcome} ${cursor}`;
  return (
    <Panel title="What came of each">
      <Tabs
        label="Outcomes"
        tabs={tabs}
        value={outcome ?? "all"}
        onChoose={(to) => change({ outcome: to === "all" ? undefined : to, cursor: undefined })}
      >
        <Loaded query={query}>
          {({ items, next, previous }) => (
            <>
              <Letters items={items} scope={scope} outcome={outcome} />
              <Pager
                order="place"
                shown={items.length}
                next={next}
                previous={previous}
                busy={query.isPlaceholderData}
                onTurn={(to) => change({ cursor: to })}
              />
            </>
          )}
        </Loaded>
      </Tabs>
    </Panel>
  );
}

function Letters({
  items: latest,
  scope,
  outcome,
}: {
  items: readonly Item[];
  scope: string;
  outcome?: string | undefined;
}) {
  const { items, gone, fresh, show } = useHeld(latest, scope, idOf);
  const changed = Math.max(fresh, gone.size);
  if (items.length === 0 && fresh === 0)
    return (
      <Empty title={outcome ? `None is ${lookOf(outcome).label}.` : "It has no dead letters."}>
        {outcome ? "Other outcomes are in the tabs above." : "Nothing fitted when it began."}
      </Empty>
    );
  return (
    <>
      {changed > 0 && (
        <p className={styles.fresh}>
          <Button icon="operations" onClick={show}>
            {plural(changed, "row has", "rows have")} changed, show
          </Button>
        </p>
      )}
      <Table label="What came of each" head={["Dead letter", "Outcome", "Result", "Why"]}>
        {items.map(({ id, outcome: came, reason, result, failed_attempts }) => (
          <tr key={id}>
            <th scope="row">
              <Link href={`/dead-letters/${encodeURIComponent(id)}?status=any`}>{id}</Link>
            </th>
            <td>
              <State of={came} />
            </td>
            <td>{result === null ? "—" : <Became result={result} failed={failed_attempts} />}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** What became of the message that was sent again. */
function Became({ result, failed }: { result: NonNullable<Item["result"]>; failed: number }) {
  const { label, tone, icon } = RESULTS[result];
  return (
    <>
      <Badge tone={tone} icon={icon}>
        {label}
      </Badge>
      {failed > 0 && ` after ${plural(failed, "failed attempt")}`}
    </>
  );
}

const RESULTS: Record<NonNullable<Item["result"]>, { label: string; tone: Tone; icon: IconName }> = {
  waiting: { label: "waiting", tone: "neutral", icon: "clock" },
  retrying: { label: "retrying", tone: "warn", icon: "operations" },
  handled: { label: "handled", tone: "good", icon: "check" },
  failed_again: { label: "failed again", tone: "bad", icon: "dead" },
  unknown: { label: "unknown", tone: "neutral", icon: "info" },
};

function idOf({ id }: Item): string {
  return id;
}
