import { useState } from "react";
import { Link } from "wouter";
import { type Component, type Consumer, useSchemas } from "~/api/components";
import { number, span } from "~/lib/format";
import { queueAddress } from "~/lib/url-state";
import * as texts from "~/texts/components";
import { Button, CopyButton, Dialog, Table } from "~/ui";
import styles from "./Components.module.css";
import { type PauseActions, PauseButton } from "./PauseButton";

/** The consumers of a worker, one per queue. */
export function Consumers({ of, ...pausing }: PauseActions & { of: Component }) {
  const schemas = useSchemas(of.id);
  const [shown, setShown] = useState<{ queue: string; schema: object }>();
  if (of.consumers.length === 0) return <p className={styles.below}>{texts.consumersUnknown}</p>;
  return (
    <div className={styles.consumers}>
      <h3>{texts.consumers}</h3>
      <Table
        label={texts.consumers}
        head={[
          texts.queue,
          texts.bindingKey,
          texts.prefetch,
          texts.handler,
          texts.retriesAfter,
          texts.schema,
          "",
        ]}
      >
        {of.consumers.map((one) => (
          <tr key={`${one.queue} ${one.bindingKey}`}>
            <th scope="row">
              <Link href={queueAddress(one.queue)}>{one.queue}</Link>
              {one.handler && <span className={styles.below}>{one.handler}</span>}
            </th>
            <td>
              <code>{one.bindingKey}</code>
            </td>
            <td data-number>{number(one.prefetch)}</td>
            <td>{describeHandling(one)}</td>
            <td>{describeRetries(one)}</td>
            <td>
              <Schema
                of={schemas.data?.get(one.queue)}
                query={schemas}
                onShow={(schema) => setShown({ queue: one.queue, schema })}
              />
            </td>
            <td>
              <PauseButton target={{ scope: "queue", name: one.queue }} {...pausing} />
            </td>
          </tr>
        ))}
      </Table>
      {shown && (
        <Dialog
          open
          wide
          title={titleOf(shown.schema)}
          description={texts.schemaTitle(shown.queue)}
          onClose={() => setShown(undefined)}
          actions={
            <CopyButton text={pretty(shown.schema)} label={texts.copySchema}>
              {texts.copy}
            </CopyButton>
          }
        >
          <pre className={styles.schema}>{pretty(shown.schema)}</pre>
        </Dialog>
      )}
    </div>
  );
}

/** A button that opens the schema of a consumer, or its loading or error state. */
function Schema({
  of,
  query,
  onShow,
}: {
  of: object | undefined;
  query: ReturnType<typeof useSchemas>;
  onShow(schema: object): void;
}) {
  if (query.isPending) return "…";
  if (query.isError) {
    return (
      <Button look="quiet" icon="operations" onClick={() => query.refetch()}>
        {texts.schemaRetry}
      </Button>
    );
  }
  if (!of) return texts.anyBody;
  return (
    <Button look="quiet" icon="eye" onClick={() => onShow(of)}>
      {titleOf(of)}
    </Button>
  );
}

/** Describes how messages are passed to the handler. */
export function describeHandling(one: Consumer): string {
  const parts = [
    one.batch ? texts.inBatches : texts.oneByOne,
    one.ordered && texts.inKeyOrder,
    one.inbox && texts.deduplicated,
    one.timeoutSeconds !== undefined && texts.timeout(span(one.timeoutSeconds)),
  ];
  return parts.filter(Boolean).join(", ");
}

function describeRetries(one: Consumer): string {
  const delays = one.retryDelays.map((delay) => span(delay)).join(", ");
  if (one.retriesComputed) return delays ? texts.delaysOrComputed(delays) : texts.computed;
  return delays || texts.noRetries;
}

function titleOf(schema: object): string {
  return "title" in schema && typeof schema.title === "string" ? schema.title : texts.schema;
}

function pretty(schema: object): string {
  return JSON.stringify(schema, null, 2);
}
