import { api } from "~/lib/mount";
import * as texts from "~/texts/export";
import styles from "./Export.module.css";
import { Hint } from "./Hint";

const FORMATS = [
  ["csv", texts.csv],
  ["ndjson", texts.ndjson],
] as const;

/** Links that download a list as a file: all that matches the filters, on whichever page the list is. */
export function Export({
  list,
  filters = {},
}: {
  list: "dlq" | "messages" | "audit" | "operations";
  /** As the API takes them; what is undefined is not set. */
  filters?: object;
}) {
  return (
    <span className={styles.export}>
      <span className={styles.label}>{texts.exports}</span>
      {FORMATS.map(([format, name]) => (
        <Hint key={format} text={texts.hint}>
          <a href={addressOf(list, filters, format)} aria-label={texts.exportAs(name)} download>
            {name}
          </a>
        </Hint>
      ))}
    </span>
  );
}

/** A navigation of the browser's own: the session's cookie goes along. */
function addressOf(list: string, filters: object, format: string): string {
  const address = new URL(`export/${list}`, api);
  for (const [name, value] of Object.entries(filters)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined) address.searchParams.append(name, String(each));
    }
  }
  address.searchParams.set("format", format);
  return address.href;
}
