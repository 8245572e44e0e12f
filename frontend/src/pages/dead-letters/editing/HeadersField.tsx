import type { DeadLetter } from "~/api/dead-letter";
import { findJsonProblem } from "~/lib/json";
import * as texts from "~/texts/editing";
import { Badge, Facts } from "~/ui";
import { CodeField } from "./CodeField";
import { type Draft, wrongHeaders } from "./draft";
import styles from "./Editor.module.css";

/** Edits headers as a JSON object. Shows the system headers, which stay unchanged. */
export function HeadersField({
  draft,
  deadLetter,
  onEdit,
}: {
  draft: Draft;
  deadLetter: DeadLetter;
  onEdit(changes: Partial<Draft>): void;
}) {
  return (
    <div>
      <CodeField
        label={texts.headers}
        value={draft.headers}
        onChange={(headers) => onEdit({ headers })}
        json
        error={wrongHeaders(draft)}
        wrongLine={findJsonProblem(draft.headers)?.line}
        hint={texts.headersHint}
      />
      <div className={styles.locked}>
        <p>
          <Badge icon="key">{texts.locked}</Badge> {texts.lockedHint}
        </p>
        <Facts of={lockedOf(deadLetter)} />
      </div>
    </div>
  );
}

function lockedOf({ routing_key, ordering_key, tracking_ids, hlc, requeue_count }: DeadLetter) {
  const known: readonly (readonly [string, string | null])[] = [
    ["x-outbox-routing-key", routing_key],
    ["x-outbox-ordering-key", ordering_key],
    ["x-outbox-tracking-ids", tracking_ids.join(", ")],
    ["x-outbox-hlc", hlc],
    ["x-outbox-requeue-count", String(requeue_count)],
  ];
  return known.map(([name, value]) => [name, value && <code>{value}</code>] as const);
}
