// What a page shows is in its address. A page names its parameters once; this module alone reads and writes them.

import { useCallback, useMemo } from "react";
import { useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";

/** How one parameter is read from the address and written to it. Text that makes no sense reads as the default. */
export interface Parameter<T> {
  read(text: string | null): T;
  /** null leaves the parameter out: it has its default. */
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

export function whole(least: number, most: number): Parameter<number | undefined> {
  return {
    read(found) {
      const value = Number(found);
      return found && Number.isInteger(value) && value >= least && value <= most ? value : undefined;
    },
    write: (value) => (value === undefined ? null : String(value)),
  };
}

export interface Writing {
  /** Replace the entry of the browser's history instead of adding one: for typing, and for changes that need no way back. */
  replace?: boolean;
}

/** The values in the address, and the one way to change some of them; others, also of other pages' parts, stay. */
export function useUrlState<P extends Parameters>(
  parameters: P,
): [Values<P>, (changes: Partial<Values<P>>, writing?: Writing) => void] {
  const search = useSearch();
  const values = useMemo(() => read(parameters, search), [parameters, search]);
  const change = useCallback(
    (changes: Partial<Values<P>>, writing: Writing = {}) => {
      const to = changed(parameters, window.location.search, changes);
      navigate(window.location.pathname + to, { replace: writing.replace ?? false });
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

/** The search part of an address after `changes`: `""` or `?…`. */
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

/** An address of another page with these values: for links. */
export function address<P extends Parameters>(
  path: string,
  parameters: P,
  values: Partial<Values<P>>,
): string {
  return path + changed(parameters, "", values);
}

/** The address of the page of a group of failures with a common fingerprint. */
export function groupAddress(id: string): string {
  return `/dead-letters/groups/${encodeURIComponent(id)}`;
}

/** The address of a queue's page. */
export function queueAddress(name: string): string {
  return `/queues?${new URLSearchParams({ name })}`;
}
