import { Fragment, useState } from "react";
import { Link } from "wouter";
import { type FailureGroup, useTopGroups } from "~/api/overview";
import { useWhyNot } from "~/api/session";
import { number } from "~/lib/format";
import { groupAddress } from "~/lib/url-state";
import { RepairDialog } from "~/pages/repairs";
import * as texts from "~/texts/overview";
import { Ago, Button, Empty, Loaded, Panel } from "~/ui";
import { Sparkline } from "~/ui/charts";
import styles from "./FailureGroups.module.css";

/** What fails most, with the way to look at it and the way to repair it. */
export function FailureGroups() {
  const groups = useTopGroups();
  const [repaired, repair] = useState<FailureGroup>();
  return (
    <Panel title={texts.failureGroups} flush aside={<Link href="/dead-letters">{texts.allGroups}</Link>}>
      <Loaded query={groups}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={texts.noOpen}>{texts.noOpenHint}</Empty>
          ) : (
            <ul className={styles.groups}>
              {items.map((group) => (
                <Group key={group.id} group={group} onRequeue={() => repair(group)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {repaired && (
        <RepairDialog
          action="requeue"
          selector={{ group_id: repaired.id }}
          describe={texts.deadLettersOf(repaired.open_count, repaired.title)}
          onClose={() => repair(undefined)}
        />
      )}
    </Panel>
  );
}

function Group({ group, onRequeue }: { group: FailureGroup; onRequeue(): void }) {
  const { title, open_count: open, last_seen_at, hourly_counts, note } = group;
  const whyNot = useWhyNot("repair");
  return (
    <li className={styles.group}>
      <div className={styles.words}>
        <Link href={groupAddress(group.id)} className={styles.title ?? ""}>
          <Breakable text={title} />
        </Link>
        <span className={styles.facts}>
          <span>
            {texts.last} <Ago at={last_seen_at} />
          </span>
          <Sparkline values={hourly_counts} label={describe(hourly_counts)} />
          {note && <span className={styles.note}>{note.text}</span>}
        </span>
      </div>
      <span className={styles.open}>
        <strong>{number(open)}</strong> {texts.open}
      </span>
      <Button icon="operations" whyNot={whyNot} aria-label={texts.requeueGroup(title)} onClick={onRequeue}>
        {texts.requeue}
      </Button>
    </li>
  );
}

/** Names of modules and functions break behind their dots and slashes, not in the middle of a word. */
function Breakable({ text }: { text: string }) {
  return text.split(/(?<=[./:_])(?=\w)/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text never move
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ));
}

function describe(hourly_counts: readonly number[]): string {
  const sum = hourly_counts.reduce((one, other) => one + other, 0);
  const latest = hourly_counts.at(-1) ?? 0;
  return texts.failuresInDay(sum, latest);
}
