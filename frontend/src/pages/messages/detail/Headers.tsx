import type { Message } from "~/api/messages";
import { writeJson } from "~/lib/json";
import * as texts from "~/texts/messages";
import { Table } from "~/ui";
import styles from "./Detail.module.css";

/** The headers of the message. */
export function Headers({ message: { headers } }: { message: Message }) {
  if (headers.length === 0) return null;
  return (
    <section className={styles.part} aria-labelledby="headers">
      <h3 id="headers">{texts.headers}</h3>
      <Table label={texts.headers} head={[texts.name, texts.value]}>
        {headers.map(({ name, node }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a name can occur twice
          <tr key={index}>
            <th scope="row">{name}</th>
            <td className={styles.header}>{node.kind === "string" ? node.value : writeJson(node)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
