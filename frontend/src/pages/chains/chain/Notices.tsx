import { type Chain, MAX_LIMIT } from "~/api/chains";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/chains";
import { Button, Icon } from "~/ui";
import { oneChain } from "../address";
import styles from "./Notices.module.css";
import type { Tree } from "./tree";

/** What the view does not show, and why. */
export function Notices({
  chain,
  tree,
  lookedUpId,
  choose,
}: {
  chain: Chain;
  tree: Tree;
  lookedUpId: string;
  choose(id: string): void;
}) {
  const [{ all, node }, change] = useUrlState(oneChain);
  const orphans = tree.roots.filter(({ orphan }) => orphan).length;
  const isElsewhere = lookedUpId !== chain.root_id && lookedUpId !== node;
  const notices = [
    isElsewhere && tree.byId.has(lookedUpId) && (
      <>
        {texts.lookedFor} <code>{lookedUpId}</code>
        {texts.lookedForIn} <Button onClick={() => choose(lookedUpId)}>{texts.showIt}</Button>
      </>
    ),
    isElsewhere && !tree.byId.has(lookedUpId) && (
      <>
        {texts.notShownMessage} <code>{lookedUpId}</code> {texts.notShownIn}
      </>
    ),
    chain.truncated && !all && (
      <>
        {texts.more(tree.items.length)}{" "}
        <Button onClick={() => change({ all: true }, { replace: true })}>{texts.showUpTo(MAX_LIMIT)}</Button>
      </>
    ),
    chain.truncated && all && <>{texts.tooMany(tree.items.length)}</>,
    orphans > 0 && <>{texts.orphans(orphans)}</>,
    ...chain.gaps.map((reason) => <>{texts.degraded(reason)}</>),
  ].filter(Boolean);
  if (notices.length === 0) return null;
  return (
    <ul className={styles.notices} aria-label={texts.notices}>
      {notices.map((notice, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the notices have no state
        <li key={index}>
          <Icon name="info" />
          <span>{notice}</span>
        </li>
      ))}
    </ul>
  );
}
