import { useId } from "react";
import { useQueueNames } from "~/api/repairs";
import { Checkbox, Choice, TextArea, TextField } from "~/ui";
import type { RepairDialogProps } from "./index";
import styles from "./Manners.module.css";
import { type Field, isOpenEnded } from "./options";
import type { Repairing } from "./useRepairing";

interface Props extends RepairDialogProps {
  repairing: Repairing;
}

/** Where to, how carefully, how many, and why. */
export function Manners(props: Props) {
  const { action, selector, edit, repairing } = props;
  const { options, errors, change } = repairing;
  const several = isOpenEnded(selector) || ("ids" in selector && selector.ids.length > 1);
  return (
    <section className={styles.manners} aria-label="How it is done">
      {action === "requeue" && <Destination repairing={repairing} several={several} />}
      {action === "requeue" && !edit && several && <Carefully repairing={repairing} />}
      {several && (
        <Typed
          repairing={repairing}
          field="maxItems"
          label="At most"
          hint="So many, the oldest; empty means all."
        />
      )}
      <TextArea
        label={action === "purge" ? "Reason" : "Reason (may be left out)"}
        hint="Why, for the audit and whoever looks at this later."
        value={options.reason}
        error={options.reason || repairing.repair.error ? errors.reason : undefined}
        onChange={(event) => change({ reason: event.target.value })}
      />
      {(action === "requeue" || action === "purge") && (
        <Checkbox
          label={edit ? FORCE_EDIT : FORCE[action][several ? 1 : 0]}
          checked={options.force}
          onChange={(force) => change({ force })}
        />
      )}
    </section>
  );
}

/** What is done against all advice, to one and to several. */
const FORCE: Record<"requeue" | "purge", readonly [one: string, several: string]> = {
  requeue: [
    "Also if it is older than inboxes remember: it may be handled twice",
    "Also those that are older than inboxes remember: they may be handled twice",
  ],
  purge: ["Also if it was not discarded", "Also those that were not discarded"],
};
const FORCE_EDIT = "Also if its consumer's schema refuses the edit, or it is older than inboxes remember";

function Destination({
  repairing: { options, errors, change },
  several,
}: {
  repairing: Repairing;
  several: boolean;
}) {
  const names = useQueueNames();
  const list = useId();
  return (
    <>
      <Choice
        label="Where to"
        value={options.where}
        onChoose={(where) => change({ where })}
        hint={
          options.where === "routing"
            ? "Handlers that had it already see it again, unless they use an inbox."
            : undefined
        }
        options={[
          ["back", several ? "The queue that each died in" : "The queue that it died in"],
          [
            "routing",
            `Every queue that ${several ? "their routing keys lead" : "its routing key leads"} to now`,
          ],
          ["queue", "Another queue"],
        ]}
      />
      {options.where === "queue" && (
        <>
          <TextField
            label="Queue"
            list={list}
            autoComplete="off"
            spellCheck={false}
            value={options.queue}
            error={errors.queue}
            onChange={(event) => change({ queue: event.target.value })}
          />
          <datalist id={list}>
            {names.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </>
  );
}

function Carefully({ repairing }: { repairing: Repairing }) {
  const { careful, change } = repairing;
  return (
    <fieldset className={styles.group}>
      <legend>How carefully</legend>
      <Checkbox
        label="Canary: some go first, the others follow when all of those were handled"
        checked={careful}
        onChange={(canary) => change({ canary })}
      />
      {careful && (
        <div className={styles.pair}>
          <Typed repairing={repairing} field="canaryCount" label="How many go first" />
          <Typed repairing={repairing} field="canaryWait" label="Waits at most, in seconds" />
        </div>
      )}
      <div className={styles.pair}>
        <Typed
          repairing={repairing}
          field="rate"
          label="Messages a second"
          hint="Empty: as fast as it goes."
        />
        <Typed
          repairing={repairing}
          field="stopPercent"
          label="Stop past, in % failed"
          hint={
            careful ? "Empty: one of the first is enough, then 10." : "Empty: 10. With 100 it never stops."
          }
        />
      </div>
    </fieldset>
  );
}

/** A number that is typed. */
function Typed({
  repairing: { options, errors, change },
  field,
  ...words
}: {
  repairing: Repairing;
  field: Exclude<Field, "queue" | "reason">;
  label: string;
  hint?: string;
}) {
  return (
    <TextField
      {...words}
      inputMode="decimal"
      autoComplete="off"
      value={options[field]}
      error={errors[field]}
      onChange={(event) => change({ [field]: event.target.value })}
    />
  );
}
