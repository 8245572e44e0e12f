import { type Chain, MOST } from "~/api/chains";
import { number, plural } from "~/lib/format";
import { useUrlState } from "~/lib/url-state";
import { Button, Icon } from "~/ui";
import { oneChain } from "../address";
import styles from "./Notices.module.css";
import type { Tree } from "./tree";

/** What the drawing does not show, and why. */
export function Notices({
  chain,
  tree,
  asked,
  choose,
}: {
  chain: Chain;
  tree: Tree;
  asked: string;
  choose(id: string): void;
}) {
  const [{ all, node }, change] = useUrlState(oneChain);
  const orphans = tree.roots.filter(({ orphan }) => orphan).length;
  const sought = asked !== chain.root_id && asked !== node;
  const notices = [
    sought && tree.byId.has(asked) && (
      <>
        You looked for <code>{asked}</code>, which is part of this chain.{" "}
        <Button onClick={() => choose(asked)}>Show it</Button>
      </>
    ),
    sought && !tree.byId.has(asked) && (
      <>
        The message <code>{asked}</code> belongs to this chain, but is not among those shown.
      </>
    ),
    chain.truncated && !all && (
      <>
        The chain has more than the {number(tree.items.length)} messages that are shown.{" "}
        <Button onClick={() => change({ all: true }, { replace: true })}>Show up to {number(MOST)}</Button>
      </>
    ),
    chain.truncated && all && (
      <>
        The chain has more messages than the {number(tree.items.length)} that are shown, which is as many as
        one answer holds. A message of the rest is found by its own id among the dead letters.
      </>
    ),
    orphans > 0 && (
      <>
        {plural(orphans, "message")} {orphans === 1 ? "hangs" : "hang"} from nothing that is known:{" "}
        {orphans === 1 ? "it stands" : "they stand"} at the end, with “parent unknown”.
      </>
    ),
    ...chain.unknown.map((reason) => <>Not known: {reason}.</>),
  ].filter(Boolean);
  if (notices.length === 0) return null;
  return (
    <ul className={styles.notices} aria-label="What to know about this chain">
      {notices.map((notice, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: sentences without a state of their own
        <li key={index}>
          <Icon name="info" />
          <span>{notice}</span>
        </li>
      ))}
    </ul>
  );
}
