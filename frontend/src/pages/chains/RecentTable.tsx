import { Link } from "wouter";
import { type ChainSummary, chainAddress } from "~/api/chains";
import { number } from "~/lib/format";
import * as texts from "~/texts/chains";
import { Ago, Icon, Span, State, Table } from "~/ui";
import styles from "./RecentTable.module.css";

const HEAD = [
  texts.firstMessage,
  texts.status,
  texts.started,
  texts.duration,
  texts.messages,
  texts.deadLetters,
];

export function RecentTable({ chains }: { chains: readonly ChainSummary[] }) {
  const longest = Math.max(...chains.map(({ duration_seconds }) => duration_seconds ?? 0));
  return (
    <Table label={texts.recent} head={HEAD}>
      {chains.map((chain) => (
        <Row key={chain.root_id} chain={chain} longest={longest} />
      ))}
    </Table>
  );
}

function Row({ chain, longest }: { chain: ChainSummary; longest: number }) {
  const {
    root_id,
    routing_key,
    state,
    sent_at,
    duration_seconds: seconds,
    message_count: messages,
    dead_letter_count: deadLetters,
    truncated: more,
  } = chain;
  return (
    <tr className={styles.row}>
      <th scope="row" className={styles.first}>
        <Link href={chainAddress(root_id)} className={styles.link ?? ""}>
          {routing_key || root_id}
        </Link>
        <code className={styles.id}>{root_id}</code>
      </th>
      <td>
        <State of={state} />
      </td>
      <td className={styles.moment}>{sent_at ? <Ago at={sent_at} /> : "—"}</td>
      <td className={styles.took}>
        <Span seconds={seconds} />
        <span
          className={styles.bar}
          aria-hidden="true"
          style={{ width: `${longest > 0 ? ((seconds ?? 0) / longest) * 100 : 0}%` }}
        />
      </td>
      <td className={styles.moment} title={more ? texts.moreThanCounted : undefined}>
        {number(messages)}
        {more && "+"}
      </td>
      <td className={styles.moment}>
        {deadLetters > 0 ? (
          <span className={styles.deadLetters}>
            <Icon name="dead" /> {number(deadLetters)}
          </span>
        ) : (
          "0"
        )}
      </td>
    </tr>
  );
}
