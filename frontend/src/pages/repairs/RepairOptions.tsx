import { useId } from "react";
import { useQueueNames } from "~/api/repairs";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/repairs";
import { Checkbox, Choice, TextArea, TextField } from "~/ui";
import { type Field, isOpenEnded } from "./options";
import styles from "./RepairOptions.module.css";
import type { RepairDialogProps } from "./types";
import type { RepairForm } from "./useRepairForm";

interface Props extends RepairDialogProps {
  repairForm: RepairForm;
}

/** Destination, safety, limit and reason. */
export function RepairOptions(props: Props) {
  const { action, selector, edit, repairForm } = props;
  const { options, errors, change } = repairForm;
  const several = isOpenEnded(selector) || ("ids" in selector && selector.ids.length > 1);
  return (
    <section className={styles.options} aria-label={texts.options}>
      {action === "requeue" && <Destination repairForm={repairForm} />}
      {action === "requeue" && !edit && several && <Safety repairForm={repairForm} />}
      {several && (
        <NumberField repairForm={repairForm} field="maxItems" label={texts.limit} hint={texts.limitHint} />
      )}
      <TextArea
        label={action === "purge" ? texts.reason : texts.reasonOptional}
        hint={texts.reasonHint}
        value={options.reason}
        error={options.reason || repairForm.repair.error ? errors.reason : undefined}
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

/** Labels of the checkbox that overrides a check, for one and for several. */
const FORCE: Record<"requeue" | "purge", readonly [one: string, several: string]> = {
  requeue: [texts.includeOldOne, texts.includeOld],
  purge: [texts.purgeOpenOne, texts.purgeOpen],
};
const FORCE_EDIT = texts.forceEdit;

function Destination({ repairForm: { options, errors, change } }: { repairForm: RepairForm }) {
  const names = useQueueNames();
  const list = useId();
  return (
    <>
      <Choice
        label={texts.destination}
        value={options.where}
        onChoose={(where) => change({ where })}
        hint={options.where === "routing" ? texts.destinationHint : undefined}
        options={[
          ["back", texts.originalQueue],
          ["routing", texts.allBoundQueues],
          ["queue", texts.anotherQueue],
        ]}
      />
      {options.where === "queue" && (
        <>
          <TextField
            label={texts.queue}
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

function Safety({ repairForm }: { repairForm: RepairForm }) {
  const { withCanary, change } = repairForm;
  const { zone } = usePreferences();
  return (
    <fieldset className={styles.group}>
      <legend>{texts.safety}</legend>
      <Checkbox label={texts.canary} checked={withCanary} onChange={(canary) => change({ canary })} />
      {withCanary && (
        <div className={styles.pair}>
          <NumberField repairForm={repairForm} field="canaryCount" label={texts.canarySize} />
          <NumberField repairForm={repairForm} field="canaryWait" label={texts.observeFor} />
        </div>
      )}
      <div className={styles.pair}>
        <NumberField repairForm={repairForm} field="rate" label={texts.maxRate} hint={texts.maxRateHint} />
        <NumberField
          repairForm={repairForm}
          field="stopPercent"
          label={texts.stopAt}
          hint={withCanary ? texts.stopAtHintCanary : texts.stopAtHint}
        />
      </div>
      <TextField
        label={texts.startsAt(zone === "utc" ? "UTC" : texts.localTime)}
        hint={texts.startsAtHint}
        type="datetime-local"
        value={repairForm.options.startsAt}
        error={repairForm.errors.startsAt}
        onChange={(event) => change({ startsAt: event.target.value })}
      />
    </fieldset>
  );
}

/** A field for a number. */
function NumberField({
  repairForm: { options, errors, change },
  field,
  ...words
}: {
  repairForm: RepairForm;
  field: Exclude<Field, "queue" | "startsAt" | "reason">;
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
