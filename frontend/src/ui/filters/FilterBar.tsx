import { useRef, useState } from "react";
import { useShortcuts } from "~/lib/keyboard";
import { usePreferences } from "~/lib/preferences";
import type { Parameters, Values, WriteOptions } from "~/lib/url-state";
import * as texts from "~/texts/filters";
import { Button } from "../Button";
import { Icon } from "../icons";
import { Field } from "./Field";
import { type Filter, formatValue } from "./filters";
import styles from "./filters.module.css";

export interface FilterBarProps<P extends Parameters> {
  /** What is filtered: "Filter messages". */
  label: string;
  /** Filters; the name of each is a parameter of the state. */
  filters: readonly Filter<keyof P & string>[];
  /** Result of `useUrlState`. */
  state: readonly [Values<P>, (changes: Partial<Values<P>>, writing?: WriteOptions) => void];
  /** Applied with each change: `{ cursor: undefined }` returns to the first page. */
  extraChanges?: Partial<Values<P>>;
}

/** A field that sets filters with suggestions, and removable chips of the active ones. `/` focuses it. */
export function FilterBar<P extends Parameters>({ label, filters, state, extraChanges }: FilterBarProps<P>) {
  const [values, change] = state;
  const { zone } = usePreferences();
  const [chosen, choose] = useState<Filter>();
  const field = useRef<HTMLInputElement>(null);
  useShortcuts(texts.filters, [{ keys: "/", label, run: () => field.current?.focus() }]);

  const allFilters: readonly Filter[] = filters;
  const active = allFilters.filter(({ name }) => isSet(values[name]));
  function set(changes: Record<string, unknown>) {
    change({ ...extraChanges, ...changes } as Partial<Values<P>>);
    choose(undefined);
  }
  function remove(filter: Filter) {
    set({ [filter.name]: undefined });
    field.current?.focus();
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers older than 2023 lack the search element
    <div role="search" className={styles.bar} aria-label={label}>
      <Field
        ref={field}
        label={label}
        filters={allFilters}
        chosen={chosen}
        onChoose={choose}
        onSet={(filter, value) => set({ [filter.name]: value })}
        onRemoveLast={() => {
          const last = active.at(-1);
          if (last) remove(last);
        }}
      />
      {active.length > 0 && (
        <ul className={styles.chips} aria-label={texts.activeFilters}>
          {active.map((filter) => (
            <Chip
              key={filter.name}
              label={filter.label}
              text={formatValue(filter, values[filter.name], zone)}
              onEdit={() => {
                choose(filter);
                field.current?.focus();
              }}
              onRemove={() => remove(filter)}
            />
          ))}
          {active.length > 1 && (
            <li>
              <Button
                look="quiet"
                onClick={() => {
                  set(Object.fromEntries(active.map(({ name }) => [name, undefined])));
                  field.current?.focus();
                }}
              >
                {texts.clearAll}
              </Button>
            </li>
          )}
        </ul>
      )}
    </div>
  );
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

function Chip({
  label,
  text,
  onEdit,
  onRemove,
}: {
  label: string;
  text: string;
  onEdit(): void;
  onRemove(): void;
}) {
  return (
    <li className={styles.chip}>
      <button
        type="button"
        className={styles.words}
        onClick={onEdit}
        aria-label={texts.changeFilter(label, text)}
      >
        <span className={styles.name}>{label}</span> <span className={styles.text}>{text}</span>
      </button>
      <button
        type="button"
        className={styles.remove}
        onClick={onRemove}
        aria-label={texts.removeFilter(label)}
      >
        <Icon name="cross" />
      </button>
    </li>
  );
}
