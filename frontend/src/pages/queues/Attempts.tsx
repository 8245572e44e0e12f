import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import { type AttemptOrder, useAttempts } from "~/api/queues";
import { span } from "~/lib/format";
import { maybe, useUrlState } from "~/lib/url-state";
import waiting from "~/pages/waiting/Waiting.module.css";
import * as texts from "~/texts/queues";
import { Ago, Empty, Loaded, Loading, Panel, State, Table, Tabs } from "~/ui";

const ORDERS = ["latest", "slowest"] as const;
const PARAMETERS = { attempts: maybe(ORDERS) };

/** The latest or slowest attempts of the queue's handler. */
export function Attempts({ queue }: { queue: string }) {
  const [{ attempts: order = "latest" }, change] = useUrlState(PARAMETERS);
  return (
    <Panel title={texts.attemptsTitle}>
      <Tabs
        label={texts.attemptOrder}
        value={order}
        onChoose={(chosen) => change({ attempts: chosen === "slowest" ? chosen : undefined })}
        tabs={ORDERS.map((value) => ({ value, label: texts.attemptOrders[value] }))}
      >
        <AttemptTable queue={queue} order={order} />
      </Tabs>
    </Panel>
  );
}

function AttemptTable({ queue, order }: { queue: string; order: AttemptOrder }) {
  return (
    <Loaded query={useAttempts(queue, order)} loading={<Loading lines={4} />}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={texts.noAttemptsListed}>{texts.noAttemptsHint}</Empty>
        ) : (
          <Table folds label={texts.attemptsTable} head={texts.attemptsHead}>
            {items.map((one) => (
              <tr role="row" key={`${one.message_id} ${one.ended_at} ${one.outcome}`}>
                <th role="rowheader" scope="row">
                  <Link href={chainAddress(one.message_id)}>{one.routing_key}</Link>{" "}
                  <span className="quiet">{one.message_id}</span>
                </th>
                <td role="cell">
                  <State of={one.outcome} />
                </td>
                <td role="cell">{one.handling_seconds !== null && span(one.handling_seconds)}</td>
                <td role="cell">{one.waited_seconds !== null && span(one.waited_seconds)}</td>
                <td role="cell">{one.attempt}</td>
                <td role="cell">{one.ended_at && <Ago at={one.ended_at} />}</td>
                <td role="cell" className={waiting.last}>
                  {one.error && `${one.error.type}: ${one.error.message}`}
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Loaded>
  );
}
