import { useState } from "react";
import { Link } from "wouter";
import { type Component, type Consumer, useSchemas } from "~/api/components";
import { number, span } from "~/lib/format";
import { Button, CopyButton, Dialog, Table } from "~/ui";
import styles from "./Components.module.css";
import { type Pausing, Turn } from "./Detail";

/** What a worker runs, queue by queue. */
export function Consumers({ of, ...pausing }: Pausing & { of: Component }) {
  const schemas = useSchemas(of.id);
  const [shown, setShown] = useState<{ queue: string; schema: object }>();
  if (of.consumers.length === 0)
    return <p className={styles.below}>It has not said which queues it consumes.</p>;
  return (
    <div className={styles.consumers}>
      <h3>Consumers</h3>
      <Table
        label="Consumers"
        head={["Queue", "Binding key", "Prefetch", "Handler", "Retries after", "Schema", ""]}
      >
        {of.consumers.map((one) => (
          <tr key={`${one.queue} ${one.bindingKey}`}>
            <th scope="row">
              <Link href={`/messages?${new URLSearchParams({ target_queue: one.queue })}`}>{one.queue}</Link>
            </th>
            <td>
              <code>{one.bindingKey}</code>
            </td>
            <td data-number>{number(one.prefetch)}</td>
            <td>{handling(one)}</td>
            <td>{retries(one)}</td>
            <td>
              <Schema
                of={schemas.data?.get(one.queue)}
                query={schemas}
                onShow={(schema) => setShown({ queue: one.queue, schema })}
              />
            </td>
            <td>
              <Turn target={{ scope: "queue", name: one.queue }} {...pausing} />
            </td>
          </tr>
        ))}
      </Table>
      {shown && (
        <Dialog
          open
          wide
          title={titleOf(shown.schema)}
          description={`The JSON schema of bodies that the handler of ${shown.queue} takes.`}
          onClose={() => setShown(undefined)}
          actions={
            <CopyButton text={pretty(shown.schema)} label="Copy the schema">
              {"Copy"}
            </CopyButton>
          }
        >
          <pre className={styles.schema}>{pretty(shown.schema)}</pre>
        </Dialog>
      )}
    </div>
  );
}

/** Leads to the schema, if there is one; it may not be read yet. */
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
        Not read: try again
      </Button>
    );
  }
  if (!of) return "any body";
  return (
    <Button look="quiet" icon="eye" onClick={() => onShow(of)}>
      {titleOf(of)}
    </Button>
  );
}

/** How messages come to the handler. */
export function handling(one: Consumer): string {
  const said = [
    one.batch ? "in batches" : "one by one",
    one.ordered && "in the order of their keys",
    one.inbox && "each once, by the inbox",
    one.timeoutSeconds !== undefined && `for at most ${span(one.timeoutSeconds)}`,
  ];
  return said.filter(Boolean).join(", ");
}

function retries(one: Consumer): string {
  const delays = one.retryDelays.map((delay) => span(delay)).join(", ");
  if (one.retriesComputed) return delays ? `${delays}, or as computed` : "as computed";
  return delays || "none";
}

function titleOf(schema: object): string {
  return "title" in schema && typeof schema.title === "string" ? schema.title : "Schema";
}

function pretty(schema: object): string {
  return JSON.stringify(schema, null, 2);
}
