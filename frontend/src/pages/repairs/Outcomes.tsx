import { Link } from "wouter";
import type { Repaired } from "~/api/repairs";
import * as common from "~/texts/common";
import * as texts from "~/texts/repairs";
import { Button, Dialog, State, Table } from "~/ui";
import { ACTION_TEXTS } from "./action-texts";
import styles from "./Outcomes.module.css";

const ORDER = ["refused", "not_found", "skipped"];

/** The outcome for each dead letter, unchanged ones first. */
export function Outcomes({
  repaired: { action, items, counts },
  onClose,
}: {
  repaired: Repaired;
  onClose(): void;
}) {
  const sorted = [...items].sort((one, other) => rank(one.outcome) - rank(other.outcome));
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={texts.outcomesOf(ACTION_TEXTS[action].verb, items.length)}
      actions={
        <Button look="primary" onClick={onClose}>
          {common.close}
        </Button>
      }
    >
      <ul className={styles.counts}>
        {Object.entries(counts)
          .sort(([one], [other]) => rank(one) - rank(other))
          .map(([outcome, count]) => (
            <li key={outcome}>
              <strong>{count}</strong> <State of={outcome} />
            </li>
          ))}
      </ul>
      <Table label={texts.outcomes} head={[texts.deadLetter, texts.outcome, texts.reason]}>
        {sorted.map(({ id, outcome, reason }) => (
          <tr key={id}>
            <th scope="row">
              <Link href={`/dead-letters/${encodeURIComponent(id)}`} onClick={onClose}>
                {id}
              </Link>
            </th>
            <td>
              <State of={outcome} />
            </td>
            <td>{reason}</td>
          </tr>
        ))}
      </Table>
    </Dialog>
  );
}

function rank(outcome: string): number {
  const index = ORDER.indexOf(outcome);
  return index < 0 ? ORDER.length : index;
}
