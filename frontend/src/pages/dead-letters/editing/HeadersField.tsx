import type { Letter } from "~/api/dead-letter";
import { wrongIn } from "~/lib/json-text";
import { Badge, Facts } from "~/ui";
import { CodeField } from "./CodeField";
import { type Draft, wrongHeaders } from "./draft";
import styles from "./Editor.module.css";

/** Headers as a JSON object, and those of the system beside it, which go along by themselves. */
export function HeadersField({
  draft,
  letter,
  onEdit,
}: {
  draft: Draft;
  letter: Letter;
  onEdit(changes: Partial<Draft>): void;
}) {
  return (
    <div>
      <CodeField
        label="Headers"
        value={draft.headers}
        onChange={(headers) => onEdit({ headers })}
        error={wrongHeaders(draft)}
        wrongLine={wrongIn(draft.headers)?.line}
        hint="A JSON object. What is not in it any more is taken away."
      />
      <div className={styles.locked}>
        <p>
          <Badge icon="key">locked</Badge> These belong to the system. They go along, and cannot be set:
        </p>
        <Facts of={lockedOf(letter)} />
      </div>
    </div>
  );
}

function lockedOf({ routing_key, ordering_key, tracking_ids, hlc, requeue_count }: Letter) {
  const known: readonly (readonly [string, string | null])[] = [
    ["x-outbox-routing-key", routing_key],
    ["x-outbox-ordering-key", ordering_key],
    ["x-outbox-tracking-ids", tracking_ids.join(", ")],
    ["x-outbox-hlc", hlc],
    ["x-outbox-requeue-count", String(requeue_count)],
  ];
  return known.map(([name, value]) => [name, value && <code>{value}</code>] as const);
}
