import { Link } from "wouter";
import type { Message } from "~/api/messages";
import * as texts from "~/texts/messages";
import { Moment, State, Table } from "~/ui";
import styles from "./Detail.module.css";

/** The last that the history knows of the message in each of its queues. */
export function Deliveries({ message: { deliveries: handled, message_id, state } }: { message: Message }) {
  if (state !== "sent" && !handled?.length) return null;
  return (
    <section className={styles.part} aria-labelledby="handled">
      <h3 id="handled">{texts.deliveries}</h3>
      {handled === null && <p>{texts.noHistory}</p>}
      {handled?.length === 0 && <p>{texts.noDeliveries}</p>}
      {handled && handled.length > 0 && (
        <Table
          label={texts.deliveries}
          head={[texts.queue, texts.outcome, texts.time, texts.attempt, texts.error]}
        >
          {handled.map((fact) => (
            <tr key={fact.queue}>
              <th scope="row">{fact.queue}</th>
              <td>
                <State of={fact.outcome} />
                {fact.outcome === "dead_lettered" && message_id !== null && (
                  <>
                    {" "}
                    <Link
                      href={`/dead-letters?view=messages&status=any&message_id=${encodeURIComponent(message_id)}`}
                    >
                      {texts.deadLetter}
                    </Link>
                  </>
                )}
              </td>
              <td>{fact.recorded_at ? <Moment at={fact.recorded_at} short /> : "—"}</td>
              <td data-number>{fact.attempt ?? "—"}</td>
              <td className={styles.summary}>
                {fact.error ? (
                  <>
                    <strong>{fact.error.type}</strong> {fact.error.message}
                  </>
                ) : (
                  "—"
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
