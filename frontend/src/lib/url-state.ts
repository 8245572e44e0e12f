// Page state in the URL. A page declares its parameters; only this module reads and writes them.

import { useCallback, useMemo } from "react";
import { useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";

/** Reads and writes one URL parameter. Invalid text reads as the default. */
export interface Parameter<T> {
  read(text: string | null): T;
  /** Returns null to omit the parameter if it has its default. */
  write(value: T): string | null;
}

export type Parameters = Record<string, Parameter<unknown>>;
export type Values<P extends Parameters> = { [K in keyof P]: P[K] extends Parameter<infer T> ? T : never };

export const text: Parameter<string | undefined> = {
  read: (found) => found || undefined,
  write: (value) => value || null,
};

export const flag: Parameter<boolean> = {
  read: (found) => found === "1",
  write: (value) => (value ? "1" : null),
};

export function choice<const T extends string>(values: readonly T[], fallback: T): Parameter<T> {
  return {
    read: (found) => values.find((value) => value === found) ?? fallback,
    write: (value) => (value === fallback ? null : value),
  };
}

export function maybe<const T extends string>(values: readonly T[]): Parameter<T | undefined> {
  return {
    read: (found) => values.find((value) => value === found),
    write: (value) => value ?? null,
  };
}

export function integer(min: number, max: number): Parameter<number | undefined> {
  return {
    read(found) {
      const value = Number(found);
      return found && Number.isInteger(value) && value >= min && value <= max ? value : undefined;
    },
    write: (value) => (value === undefined ? null : String(value)),
  };
}

export interface WriteOptions {
  /** Replaces the history entry instead of adding one, for typing and for changes that need no way back. */
  replace?: boolean;
}

/** The values in the URL, and a function that changes some of them. All other parameters stay. */
export function useUrlState<P extends Parameters>(
  parameters: P,
): [Values<P>, (changes: Partial<Values<P>>, options?: WriteOptions) => void] {
  const search = useSearch();
  const values = useMemo(() => read(parameters, search), [parameters, search]);
  const change = useCallback(
    (changes: Partial<Values<P>>, options: WriteOptions = {}) => {
      const to = changed(parameters, window.location.search, changes);
      navigate(window.location.pathname + to, { replace: options.replace ?? false });
    },
    [parameters],
  );
  return [values, change];
}

export function read<P extends Parameters>(parameters: P, search: string): Values<P> {
  const found = new URLSearchParams(search);
  const entries = Object.entries(parameters).map(([name, parameter]) => [
    name,
    parameter.read(found.get(name)),
  ]);
  return Object.fromEntries(entries) as Values<P>;
}

/** The query string after `changes`: `""` or `?…`. */
export function changed<P extends Parameters>(
  parameters: P,
  search: string,
  changes: Partial<Values<P>>,
): string {
  const found = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    const written = parameters[name]?.write(value) ?? null;
    if (written === null) found.delete(name);
    else found.set(name, written);
  }
  const result = found.toString();
  return result ? `?${result}` : "";
}

/** Address of another page with these values, for links. */
export function address<P extends Parameters>(
  path: string,
  parameters: P,
  values: Partial<Values<P>>,
): string {
  return path + changed(parameters, "", values);
}

/** Address of the page of a failure group. */
export function groupAddress(id: string): string {
  return `/dead-letters/groups/${encodeURIComponent(id)}`;
}

/** Address of a queue's page. */
export function queueAddress(name: string): string {
  return `/queues?${new URLSearchParams({ name })}`;
}
