import { Link } from "wouter";
import type { Message } from "~/api/messages";
import * as texts from "~/texts/messages";
import { Moment, State, Table } from "~/ui";
import styles from "./Detail.module.css";

/** The latest outcome in the history for each queue of the message. */
export function Deliveries({ message: { deliveries, message_id, state } }: { message: Message }) {
  if (state !== "sent" && !deliveries?.length) return null;
  return (
    <section className={styles.part} aria-labelledby="handled">
      <h3 id="handled">{texts.deliveries}</h3>
      {deliveries === null && <p>{texts.noHistory}</p>}
      {deliveries?.length === 0 && <p>{texts.noDeliveries}</p>}
      {deliveries && deliveries.length > 0 && (
        <Table
          label={texts.deliveries}
          head={[texts.queue, texts.outcome, texts.time, texts.attempt, texts.error]}
        >
          {deliveries.map((one) => (
            <tr key={one.queue}>
              <th scope="row">{one.queue}</th>
              <td>
                <State of={one.outcome} />
                {one.outcome === "dead_lettered" && message_id !== null && (
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
              <td>{one.recorded_at ? <Moment at={one.recorded_at} short /> : "—"}</td>
              <td data-number>{one.attempt ?? "—"}</td>
              <td className={styles.summary}>
                {one.error ? (
                  <>
                    <strong>{one.error.type}</strong> {one.error.message}
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
