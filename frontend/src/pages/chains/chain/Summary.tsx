import type { Chain } from "~/api/chains";
import { number, span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { CopyButton, Moment } from "~/ui";
import type { Span } from "./lanes";
import styles from "./Summary.module.css";
import { needsAttention } from "./severity";
import type { Tree } from "./tree";

/** Key figures of a chain: size, duration, and messages that need attention. */
export function Summary({ chain, tree, extent }: { chain: Chain; tree: Tree; extent: Span | undefined }) {
  const { items } = tree;
  const attention = items.filter(({ message }) => needsAttention(message.state));
  const retried = items.filter(({ message }) =>
    message.deliveries.some(({ attempt_count: attempts }) => attempts > 1),
  ).length;
  return (
    <dl className={styles.summary}>
      <Figure name={texts.messages} value={`${number(items.length)}${chain.truncated ? "+" : ""}`} />
      <Figure name={texts.duration} value={span(chain.duration_seconds)} />
      {extent && (
        <div>
          <dt>{texts.started}</dt>
          <dd>
            <Moment at={new Date(extent.from).toISOString()} short />
          </dd>
        </div>
      )}
      <Figure name={texts.needsAttention} value={number(attention.length)} bad={attention.length > 0} />
      <Figure name={texts.retried} value={number(retried)} />
      <Figure name={texts.criticalPath} value={number(chain.critical_path.length)} />
      <div className={styles.root}>
        <dt>{texts.firstId}</dt>
        <dd>
          <code>{chain.root_id}</code> <CopyButton text={chain.root_id} label={texts.copyId} />
        </dd>
      </div>
    </dl>
  );
}

function Figure({ name, value, bad = false }: { name: string; value: string; bad?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd data-bad={bad || undefined}>{value}</dd>
    </div>
  );
}
