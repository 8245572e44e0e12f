import type { GroupedBy } from "~/api/dead-letters";
import { Choice } from "~/ui";
import type { Place } from "./parameters";
import styles from "./Views.module.css";

const VIEWS = [
  ["messages", "Messages"],
  ["groups", "Groups"],
] as const;

const BY: readonly (readonly [GroupedBy, string])[] = [
  ["fingerprint", "Same error"],
  ["queue", "Queue"],
  ["routing_key", "Routing key"],
];

/** One by one, or by what they have in common; and in which order. */
export function Views({
  state: [place, change],
  onLeave,
}: {
  state: readonly [Place, (changes: Partial<Place>) => void];
  /** Another view was chosen: what is open is of no use there. */
  onLeave(): void;
}) {
  return (
    <div className={styles.views}>
      <fieldset className={styles.segments}>
        <legend className="unseen">View</legend>
        {VIEWS.map(([view, label]) => (
          <button
            key={view}
            type="button"
            aria-pressed={place.view === view}
            onClick={() => {
              change({ view });
              onLeave();
            }}
          >
            {label}
          </button>
        ))}
      </fieldset>
      {place.view === "groups" ? (
        <Choice<GroupedBy>
          label={<span className="unseen">Grouped by</span>}
          value={place.by}
          onChoose={(by) => change({ by })}
          options={BY}
        />
      ) : (
        <Choice<Place["sort"]>
          label={<span className="unseen">Order</span>}
          value={place.sort}
          onChoose={(sort) => change({ sort, cursor: undefined })}
          options={[
            ["newest", "Newest first"],
            ["oldest", "Oldest first"],
          ]}
        />
      )}
    </div>
  );
}
