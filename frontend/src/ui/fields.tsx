// Form controls with a visible label, an optional hint, and an error.

import { Field as BaseField } from "@base-ui/react/field";
import { Switch as BaseSwitch } from "@base-ui/react/switch";
import { type ComponentProps, type ReactNode, useId } from "react";
import styles from "./fields.module.css";

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  /** Validation error, shown next to the control and read out. */
  error?: string | undefined;
}

export function TextField({
  label,
  hint,
  error,
  ...input
}: FieldProps & Omit<ComponentProps<typeof BaseField.Control>, "className">) {
  return (
    <FieldLayout label={label} hint={hint} error={error}>
      <BaseField.Control {...input} className={styles.input ?? ""} />
    </FieldLayout>
  );
}

export function TextArea({
  label,
  hint,
  error,
  ...input
}: FieldProps & Omit<ComponentProps<"textarea">, "className">) {
  return (
    <FieldLayout label={label} hint={hint} error={error}>
      <BaseField.Control render={<textarea {...input} />} className={styles.input ?? ""} />
    </FieldLayout>
  );
}

/** A native select, because it works on every device. */
export function Choice<T extends string>({
  label,
  hint,
  error,
  value,
  onChoose,
  options,
}: FieldProps & { value: T; onChoose(value: T): void; options: readonly (readonly [T, string])[] }) {
  return (
    <FieldLayout label={label} hint={hint} error={error}>
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
    </FieldLayout>
  );
}

function FieldLayout({ label, hint, error, children }: FieldProps & { children: ReactNode }) {
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
  /** Makes the label visible only to screen readers, for table rows. */
  hideLabel?: boolean;
  checked: boolean;
  indeterminate?: boolean;
  disabled?: boolean;
  onChange(checked: boolean, event: Event): void;
}

/** A native checkbox, because it is cheap: lists have one per row. */
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
