// Controls of forms and filters. Each has a visible label, and room for a hint and for what is wrong with it.

import { Field as BaseField } from "@base-ui/react/field";
import { Switch as BaseSwitch } from "@base-ui/react/switch";
import { type ComponentProps, type ReactNode, useId } from "react";
import styles from "./fields.module.css";

interface Labelled {
  label: ReactNode;
  hint?: ReactNode;
  /** What is wrong with the value; shown next to it and read out. */
  error?: string | undefined;
}

export function TextField({
  label,
  hint,
  error,
  ...input
}: Labelled & Omit<ComponentProps<typeof BaseField.Control>, "className">) {
  return (
    <Around label={label} hint={hint} error={error}>
      <BaseField.Control {...input} className={styles.input ?? ""} />
    </Around>
  );
}

export function TextArea({
  label,
  hint,
  error,
  ...input
}: Labelled & Omit<ComponentProps<"textarea">, "className">) {
  return (
    <Around label={label} hint={hint} error={error}>
      <BaseField.Control render={<textarea {...input} />} className={styles.input ?? ""} />
    </Around>
  );
}

/** One of few, as the browser's own list: it works everywhere, with every device. */
export function Choice<T extends string>({
  label,
  hint,
  error,
  value,
  onChoose,
  options,
}: Labelled & { value: T; onChoose(value: T): void; options: readonly (readonly [T, string])[] }) {
  return (
    <Around label={label} hint={hint} error={error}>
      <BaseField.Control
        render={
          <select>
            {options.map(([option, text]) => (
              <option key={option} value={option}>
                {text}
              </option>
            ))}
          </select>
        }
        value={value}
        onChange={(event) => onChoose(event.target.value as T)}
        className={styles.input ?? ""}
      />
    </Around>
  );
}

function Around({ label, hint, error, children }: Labelled & { children: ReactNode }) {
  return (
    <BaseField.Root className={styles.field ?? ""} invalid={error !== undefined}>
      <BaseField.Label className={styles.label ?? ""}>{label}</BaseField.Label>
      {children}
      {hint && <BaseField.Description className={styles.hint ?? ""}>{hint}</BaseField.Description>}
      {error !== undefined && (
        <BaseField.Error match className={styles.error ?? ""}>
          {error}
        </BaseField.Error>
      )}
    </BaseField.Root>
  );
}

export interface CheckboxProps {
  label: ReactNode;
  /** The label is read out but not shown, as in a table's rows. */
  hideLabel?: boolean;
  checked: boolean;
  indeterminate?: boolean;
  disabled?: boolean;
  onChange(checked: boolean, event: Event): void;
}

/** The browser's own, which is cheap: a list has one on each of its rows. */
export function Checkbox({
  label,
  hideLabel = false,
  checked,
  indeterminate = false,
  disabled = false,
  onChange,
}: CheckboxProps) {
  const id = useId();
  return (
    <span className={styles.check}>
      <input
        ref={(box) => {
          if (box) box.indeterminate = indeterminate;
        }}
        id={id}
        type="checkbox"
        className={styles.box}
        checked={checked}
        disabled={disabled}
        aria-label={hideLabel && typeof label === "string" ? label : undefined}
        onChange={({ target, nativeEvent }) => onChange(target.checked, nativeEvent)}
      />
      {!hideLabel && <label htmlFor={id}>{label}</label>}
    </span>
  );
}

export function Switch({
  label,
  checked,
  onChange,
}: {
  label: ReactNode;
  checked: boolean;
  onChange(checked: boolean): void;
}) {
  const id = useId();
  return (
    <span className={styles.check}>
      <BaseSwitch.Root id={id} className={styles.switch ?? ""} checked={checked} onCheckedChange={onChange}>
        <BaseSwitch.Thumb className={styles.thumb ?? ""} />
      </BaseSwitch.Root>
      <label htmlFor={id}>{label}</label>
    </span>
  );
}
