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
import styles from "./Rows.module.css";

/** The largest failure groups, with a link to each and a requeue button. */
export function FailureGroups() {
  const groups = useTopGroups();
  const [requeued, setRequeued] = useState<FailureGroup>();
  return (
    <Panel title={texts.failureGroups} flush aside={<Link href="/dead-letters">{texts.allGroups}</Link>}>
      <Loaded query={groups}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={texts.noOpen}>{texts.noOpenHint}</Empty>
          ) : (
            <ul className={styles.rows}>
              {items.map((group) => (
                <Group key={group.id} group={group} onRequeue={() => setRequeued(group)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {requeued && (
        <RepairDialog
          action="requeue"
          selector={{ group_id: requeued.id }}
          describe={texts.deadLettersOf(requeued.open_count, requeued.title)}
          onClose={() => setRequeued(undefined)}
        />
      )}
    </Panel>
  );
}

function Group({ group, onRequeue }: { group: FailureGroup; onRequeue(): void }) {
  const { title, open_count: open, last_seen_at, hourly_counts, note } = group;
  const whyNot = useWhyNot("repair");
  return (
    <li className={styles.row}>
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
      <span className={styles.count}>
        <strong>{number(open)}</strong> {texts.open}
      </span>
      <Button icon="operations" whyNot={whyNot} aria-label={texts.requeueGroup(title)} onClick={onRequeue}>
        {texts.requeue}
      </Button>
    </li>
  );
}

/** Allows line breaks after dots and slashes in module and function names, not inside words. */
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
