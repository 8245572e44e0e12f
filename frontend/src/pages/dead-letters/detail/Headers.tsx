import type { JsonNode } from "~/lib/json";
import { writeJson } from "~/lib/json";
import * as texts from "~/texts/dead-letters";
import { Table } from "~/ui";
import styles from "./Headers.module.css";

/** Headers or properties with their AMQP types, or else their JSON types. */
export function Headers({
  label,
  of,
  types = {},
}: {
  label: string;
  of: JsonNode;
  /** By JSON pointer. */
  types?: Readonly<Record<string, unknown>>;
}) {
  if (of.kind !== "object" || of.members.length === 0)
    return <p className={styles.none}>{texts.noHeaders}</p>;
  return (
    <Table label={label} head={[texts.name, texts.type, texts.value]}>
      {of.members.map(({ key, node }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a name can occur twice
        <tr key={`${key} ${index}`}>
          <th scope="row" className={styles.name}>
            <code>{key}</code>
          </th>
          <td className={styles.type}>{typeOf(key, node, types)}</td>
          <td className={styles.value}>
            <code>{textOf(node)}</code>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function typeOf(key: string, node: JsonNode, types: Readonly<Record<string, unknown>>): string {
  const type = types[`/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`];
  if (typeof type === "string") return type;
  if (node.kind !== "literal") return node.kind;
  return node.source === "null" ? "null" : "boolean";
}

function textOf(node: JsonNode): string {
  if (node.kind === "string") return node.value;
  return writeJson(node, node.kind === "object" || node.kind === "array" ? 2 : 0);
}
