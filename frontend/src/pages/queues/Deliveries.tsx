import { Link, useSearch } from "wouter";
import { chainAddress } from "~/api/chains";
import { contentOf } from "~/api/messages";
import { toFailure } from "~/api/problems";
import {
  DELIVERY_STATES,
  type Delivery,
  type DeliveryDetail,
  useDeliveries,
  useDelivery,
} from "~/api/waiting";
import { capitalize, count, span } from "~/lib/format";
import { changed, maybe, text, useUrlState } from "~/lib/url-state";
import { Changes } from "~/pages/waiting/Changes";
import styles from "~/pages/waiting/Waiting.module.css";
import * as texts from "~/texts/waiting";
import {
  Ago,
  Dialog,
  Empty,
  Facts,
  Loaded,
  Loading,
  Moment,
  Pager,
  Panel,
  State,
  stateStyle,
  Table,
  Tabs,
} from "~/ui";
import { externalFacts } from "~/ui/External";
import { Payload } from "~/ui/payload";

const PARAMETERS = { status: maybe(DELIVERY_STATES), cursor: text, delivery: text };
const ALL = "all";

/** The messages in a queue, if the broker can list them, with actions. */
export function Deliveries({ queue, listable }: { queue: string; listable: boolean }) {
  return (
    <Panel title={texts.inQueue}>
      {listable ? <DeliveryTabs queue={queue} /> : <p className="quiet">{texts.rabbitmq}</p>}
    </Panel>
  );
}

function DeliveryTabs({ queue }: { queue: string }) {
  const [{ status, cursor, delivery: open }, change] = useUrlState(PARAMETERS);
  const search = useSearch();
  const query = useDeliveries(queue, status, cursor);
  const filter = { queue, ...(status && { state: status }) };
  const later = status === "retrying" || status === "postponed";
  return (
    <Tabs
      label={texts.status}
      value={status ?? ALL}
      onChoose={(chosen) =>
        change({ status: DELIVERY_STATES.find((each) => each === chosen), cursor: undefined })
      }
      tabs={[ALL, ...DELIVERY_STATES].map((value) => ({
        value,
        label: value === ALL ? texts.all : capitalize(stateStyle(value).label),
      }))}
    >
      <div className={styles.list}>
        {status !== "in_flight" && (
          <Changes
            target={{ filter }}
            choices={[
              ...(later ? [{ action: "retry" as const, label: texts.retryAll }] : []),
              { action: "dead_letter", label: texts.deadLetterAll },
            ]}
          />
        )}
        <Loaded query={query} loading={<Loading lines={4} />}>
          {({ items, next, previous }) => (
            <>
              {items.length === 0 ? (
                <Empty title={status ? texts.noneWith(stateStyle(status).label) : texts.none} />
              ) : (
                <Table folds label={texts.table} head={texts.head}>
                  {items.map((one) => (
                    <Row
                      key={one.id}
                      of={one}
                      href={`/queues${changed(PARAMETERS, search, { delivery: one.id })}`}
                    />
                  ))}
                </Table>
              )}
              <Pager
                shown={items.length}
                next={next}
                previous={previous}
                busy={query.isPlaceholderData}
                onPageChange={(to) => change({ cursor: to })}
                order="position"
              />
            </>
          )}
        </Loaded>
      </div>
      {open !== undefined && <Detail id={open} onClose={() => change({ delivery: undefined })} />}
    </Tabs>
  );
}

function Row({ of: one, href }: { of: Delivery; href: string }) {
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <Link href={href}>{one.routing_key}</Link> <span className="quiet">{one.id}</span>
      </th>
      <td role="cell">
        <State of={one.state} />
      </td>
      <td role="cell">{one.attempt}</td>
      <td role="cell">{one.due_at && <Moment at={one.due_at} />}</td>
      <td role="cell">{one.created_at && <Ago at={one.created_at} />}</td>
      <td role="cell" className={styles.last}>
        {one.last_error?.message ?? one.preview}
      </td>
    </tr>
  );
}

function Detail({ id, onClose }: { id: string; onClose(): void }) {
  const query = useDelivery(id);
  const gone = query.error && toFailure(query.error).code === "not_found";
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={query.data?.routing_key ?? texts.deliveryTitle(id)}
      description={texts.deliveryTitle(id)}
    >
      {gone ? (
        <Empty title={texts.notThere(id)}>{texts.notThereHint}</Empty>
      ) : (
        <Loaded query={query} loading={<Loading lines={6} />}>
          {(found) => <Parts of={found} />}
        </Loaded>
      )}
    </Dialog>
  );
}

function Parts({ of: found }: { of: DeliveryDetail }) {
  const inFlight = found.state === "in_flight" ? texts.isInFlight : undefined;
  const due = found.state === "queued" ? texts.isDue : undefined;
  const ordered = found.ordering_key === null ? undefined : texts.isOrdered;
  const { leased_by: holder, blocked_by: first } = found;
  return (
    <div className={styles.detail}>
      <p>
        <State of={found.state} /> {found.reason}
      </p>
      <Changes
        target={{ ids: [found.id] }}
        choices={[
          { action: "retry", label: texts.retry, whyNot: inFlight ?? due },
          { action: "front", label: texts.toFront, whyNot: inFlight ?? ordered },
          {
            action: "back",
            label: texts.toBack,
            whyNot: inFlight ?? ordered ?? (due ? undefined : texts.isNotDue),
          },
          { action: "dead_letter", label: texts.deadLetter, whyNot: inFlight },
        ]}
      />
      <Facts
        of={[
          [texts.worker, holder && texts.workerOn(holder.name, holder.host, holder.process_id)],
          [texts.since, found.leased_at && <Ago at={found.leased_at} />],
          [texts.ahead, found.ahead_count && count(found.ahead_count)],
          [texts.begins, found.begins_in_seconds !== null && span(found.begins_in_seconds)],
          [texts.blockedBy, first && texts.deliveryTitle(first.id)],
          [texts.attempt, String(found.attempt)],
          [texts.crashes, found.crash_count > 0 && String(found.crash_count)],
          [inFlight ? texts.leaseEnds : texts.dueAt, found.due_at && <Moment at={found.due_at} />],
          [texts.published, found.created_at && <Moment at={found.created_at} />],
          [texts.expires, found.expires_at && <Moment at={found.expires_at} />],
          [texts.orderingKey, found.ordering_key],
          ...externalFacts(found),
          [
            texts.messageId,
            <Link key="id" href={chainAddress(found.message_id)}>
              {found.message_id}
            </Link>,
          ],
        ]}
      />
      {found.failures.length > 0 && (
        <section aria-label={texts.failures}>
          <h3>{texts.failures}</h3>
          <ul className={styles.failures}>
            {found.failures.map(({ attempt, failed_at: at, error }) => (
              <li key={`${attempt} ${at}`}>
                <strong>{texts.failure(attempt)}</strong> {at && <Ago at={at} />}
                <div>
                  {error.type}: {error.message}
                </div>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Payload label={texts.bodyOf(found.id)} of={contentOf(found)} />
    </div>
  );
}
