import { type ReactNode, useId } from "react";
import styles from "./Settings.module.css";

/** A group of radio buttons. */
export function ChoiceGroup<T extends string>({
  label,
  hint,
  value,
  options,
  onChoose,
}: {
  label: string;
  hint?: ReactNode;
  value: T;
  options: readonly (readonly [T, string])[];
  onChoose(value: T): void;
}) {
  const name = useId();
  return (
    <fieldset className={styles.choice} aria-describedby={hint ? `${name}-hint` : undefined}>
      <legend className={styles.label}>{label}</legend>
      <div className={styles.options}>
        {options.map(([option, words]) => (
          <label key={option} className={styles.option}>
            <input
              type="radio"
              name={name}
              value={option}
              checked={option === value}
              onChange={() => onChoose(option)}
            />
            {words}
          </label>
        ))}
      </div>
      {hint && (
        <p id={`${name}-hint`} className={styles.quiet}>
          {hint}
        </p>
      )}
    </fieldset>
  );
}
