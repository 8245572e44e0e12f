import type { Letter } from "~/api/dead-letter";
import { Moment } from "~/ui";
import { Payload } from "~/ui/payload";
import styles from "./Editions.module.css";
import { Headers } from "./Headers";

/** The payload as it was before each edit, the latest first. */
export function Editions({ letter }: { letter: Letter }) {
  return [...letter.editions].reverse().map(({ version, replaced_at, replaced_by, body, headers }) => (
    <details key={version} className={styles.edition}>
      <summary>
        Version {version}, until {replaced_by ?? "somebody"} edited it at <Moment at={replaced_at} short />
      </summary>
      <Payload of={body} label={`Body of version ${version}`} />
      {headers && <Headers label={`Headers of version ${version}`} of={headers} />}
    </details>
  ));
}
