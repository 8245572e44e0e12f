import type { GroupedBy } from "~/api/dead-letters";
import * as texts from "~/texts/dead-letters";
import { Choice } from "~/ui";
import type { UrlState } from "./parameters";
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

const GROUP_STATUSES: readonly (readonly [UrlState["group_status"], string])[] = [
  ["active", texts.activeGroups],
  ["fixed", texts.fixedGroups],
  ["muted", texts.mutedGroups],
  ["any", texts.anyGroups],
];

/** Switches between messages and groups, and chooses grouping and order. */
export function ViewSwitch({
  state: [urlState, change],
  view: shown,
  onLeave,
}: {
  state: readonly [UrlState, (changes: Partial<UrlState>) => void];
  /** The current view. While a message is open, always messages. */
  view: UrlState["view"];
  /** Called when another view is chosen, to close the open dead letter. */
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
          {urlState.by === "fingerprint" && (
            <Choice<UrlState["group_status"]>
              label={<span className="unseen">{texts.groupStatus}</span>}
              value={urlState.group_status}
              onChoose={(group_status) => change({ group_status })}
              options={GROUP_STATUSES}
            />
          )}
          <Choice<GroupedBy>
            label={<span className="unseen">{texts.groupedBy}</span>}
            value={urlState.by}
            onChoose={(by) => change({ by })}
            options={BY}
          />
        </>
      ) : (
        <Choice<UrlState["sort"]>
          label={<span className="unseen">{texts.order}</span>}
          value={urlState.sort}
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
