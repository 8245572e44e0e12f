import type { GroupedBy } from "~/api/dead-letters";
import * as texts from "~/texts/dead-letters";
import { Choice } from "~/ui";
import type { Place } from "./parameters";
import styles from "./ViewSwitch.module.css";

const VIEWS = [
  ["groups", texts.groups],
  ["messages", texts.messages],
] as const;

const BY: readonly (readonly [GroupedBy, string])[] = [
  ["fingerprint", texts.sameError],
  ["queue", texts.queue],
  ["routing_key", texts.routingKey],
];

const GROUP_STATUSES: readonly (readonly [Place["group_status"], string])[] = [
  ["active", texts.activeGroups],
  ["fixed", texts.fixedGroups],
  ["muted", texts.mutedGroups],
  ["any", texts.anyGroups],
];

/** One by one, or by what they have in common; and in which order. */
export function ViewSwitch({
  state: [place, change],
  view: shown,
  onLeave,
}: {
  state: readonly [Place, (changes: Partial<Place>) => void];
  /** What is shown: next to an open message always messages. */
  view: Place["view"];
  /** Another view was chosen: what is open is of no use there. */
  onLeave(): void;
}) {
  return (
    <div className={styles.views}>
      <fieldset className={styles.segments}>
        <legend className="unseen">{texts.view}</legend>
        {VIEWS.map(([view, label]) => (
          <button
            key={view}
            type="button"
            aria-pressed={shown === view}
            onClick={() => {
              change({ view });
              onLeave();
            }}
          >
            {label}
          </button>
        ))}
      </fieldset>
      {shown === "groups" ? (
        <>
          {place.by === "fingerprint" && (
            <Choice<Place["group_status"]>
              label={<span className="unseen">{texts.groupStatus}</span>}
              value={place.group_status}
              onChoose={(group_status) => change({ group_status })}
              options={GROUP_STATUSES}
            />
          )}
          <Choice<GroupedBy>
            label={<span className="unseen">{texts.groupedBy}</span>}
            value={place.by}
            onChoose={(by) => change({ by })}
            options={BY}
          />
        </>
      ) : (
        <Choice<Place["sort"]>
          label={<span className="unseen">{texts.order}</span>}
          value={place.sort}
          onChoose={(sort) => change({ sort, cursor: undefined })}
          options={[
            ["newest", texts.newestFirst],
            ["oldest", texts.oldestFirst],
          ]}
        />
      )}
    </div>
  );
}
