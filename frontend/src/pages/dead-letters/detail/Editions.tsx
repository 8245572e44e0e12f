import type { DeadLetter } from "~/api/dead-letter";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { Moment } from "~/ui";
import { Payload } from "~/ui/payload";
import styles from "./Editions.module.css";
import { Headers } from "./Headers";

/** The earlier versions of an edited payload, latest first. */
export function Editions({ deadLetter }: { deadLetter: DeadLetter }) {
  return [...deadLetter.editions].reverse().map(({ version, replaced_at, replaced_by, body, headers }) => (
    <details key={version} className={styles.edition}>
      <summary>
        {texts.editionUntil(version, replaced_by ?? common.unknownActor)} <Moment at={replaced_at} short />
      </summary>
      <Payload of={body} label={texts.bodyOfVersion(version)} />
      {headers && <Headers label={texts.headersOfVersion(version)} of={headers} />}
    </details>
  ));
}
