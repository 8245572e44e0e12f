import { api } from "~/lib/mount";
import * as texts from "~/texts/export";
import styles from "./Export.module.css";
import { Hint } from "./Hint";

const FORMATS = [
  ["csv", texts.csv],
  ["ndjson", texts.ndjson],
] as const;

/** Links that download everything that matches the filters, not just the current page. */
export function Export({
  list,
  filters = {},
}: {
  list: "dlq" | "messages" | "audit" | "operations";
  /** In the API's format; undefined filters are not set. */
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

/** Download address. The browser sends the session cookie with the navigation. */
function addressOf(list: string, filters: object, format: string): string {
  const address = new URL(`export/${list}`, api);
  for (const [name, value] of Object.entries(filters)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) address.searchParams.append(name, String(item));
    }
  }
  address.searchParams.set("format", format);
  return address.href;
}
