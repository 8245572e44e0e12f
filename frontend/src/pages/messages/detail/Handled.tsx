import { Link } from "wouter";
import type { Message } from "~/api/messages";
import { Moment, State, Table } from "~/ui";
import styles from "./Detail.module.css";

/** The last that the history knows of the message in each of its queues. */
export function Handled({ message: { handled, message_id, state } }: { message: Message }) {
  if (state !== "sent" && !handled?.length) return null;
  return (
    <section className={styles.part} aria-labelledby="handled">
      <h3 id="handled">In its queues</h3>
      {handled === null && <p>There is no history: it is turned off, or its table is missing.</p>}
      {handled?.length === 0 && <p>No worker has told of it yet.</p>}
      {handled && handled.length > 0 && (
        <Table label="In its queues" head={["Queue", "Outcome", "When", "Attempt", "Error"]}>
          {handled.map((fact) => (
            <tr key={fact.queue}>
              <th scope="row">{fact.queue}</th>
              <td>
                <State of={fact.fact} />
                {fact.fact === "died" && message_id !== null && (
                  <>
                    {" "}
                    <Link href={`/dead-letters?status=any&message_id=${encodeURIComponent(message_id)}`}>
                      Dead letter
                    </Link>
                  </>
                )}
              </td>
              <td>{fact.at ? <Moment at={fact.at} short /> : "—"}</td>
              <td data-number>{fact.attempt ?? "—"}</td>
              <td className={styles.told}>
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
