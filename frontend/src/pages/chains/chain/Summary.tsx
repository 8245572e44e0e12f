import type { Chain } from "~/api/chains";
import { number, span } from "~/lib/format";
import { CopyButton, Moment } from "~/ui";
import { needsSomebody } from "./gravity";
import type { Span } from "./lanes";
import styles from "./Summary.module.css";
import type { Tree } from "./tree";

/** The chain in a line: how large, how long, and how much of it needs somebody. */
export function Summary({ chain, tree, extent }: { chain: Chain; tree: Tree; extent: Span | undefined }) {
  const { items } = tree;
  const needy = items.filter(({ message }) => needsSomebody(message.state));
  const retried = items.filter(({ message }) => message.legs.some(({ attempts }) => attempts > 1)).length;
  return (
    <dl className={styles.summary}>
      <Figure name="Messages" value={`${number(items.length)}${chain.truncated ? "+" : ""}`} />
      <Figure name="Took" value={span(chain.duration_seconds)} />
      {extent && (
        <div>
          <dt>Began</dt>
          <dd>
            <Moment at={new Date(extent.from).toISOString()} short />
          </dd>
        </div>
      )}
      <Figure name="Need somebody" value={number(needy.length)} bad={needy.length > 0} />
      <Figure name="Retried" value={number(retried)} />
      <Figure name="Critical path" value={number(chain.critical_path.length)} />
      <div className={styles.root}>
        <dt>Id of the first message</dt>
        <dd>
          <code>{chain.root_id}</code> <CopyButton text={chain.root_id} label="Copy the id" />
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
