// Filters as data, and what the filter field offers for what is typed into it.

import { moment, type Zone } from "~/lib/format";
import * as texts from "~/texts/filters";
import { timeIn } from "./times";

interface Named<N extends string> {
  /** Of its parameter in the address. */
  name: N;
  /** As a person reads it: "Routing key". */
  label: string;
}

export type Filter<N extends string = string> = Named<N> &
  (
    | {
        kind: "text";
        /** Values; with a second text, that is how one reads in the list, as with its count. */
        suggestions?: readonly (string | readonly [string, string])[] | undefined;
        /** What may be written: "a whole id", "order.* for all that begin so". */
        hint?: string;
        /** How the value reads that is set, where that is known: a group's title. */
        shown?: string | undefined;
        /** Text that is typed without choosing a filter is offered to this one first. */
        first?: boolean;
      }
    /** Values and how they read; in the list as the third text, where there is one. */
    | { kind: "choice"; options: readonly (readonly [string, string, string?])[] }
    | { kind: "time" }
    | { kind: "whole"; least: number; most: number }
  );

export type Offer =
  /** Goes on to the values of a filter. */
  | { kind: "filter"; filter: Filter }
  /** Sets a filter. */
  | { kind: "value"; filter: Filter; value: string | number; text: string };

const MOST = 12;

/** What is offered while `typed` is in the field; with `chosen`, values of that filter alone. */
export function offersFor(
  filters: readonly Filter[],
  chosen: Filter | undefined,
  typed: string,
  zone: Zone,
  now = Date.now(),
): readonly Offer[] {
  const text = typed.trim();
  if (chosen) return valuesOf(chosen, text, zone, now);
  if (!text) return filters.map((filter) => ({ kind: "filter", filter }));
  const named = filters
    .filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()))
    .map((filter): Offer => ({ kind: "filter", filter }));
  const written = filters
    .filter((filter) => filter.kind === "text")
    .sort((a, b) => Number(b.first ?? false) - Number(a.first ?? false))
    .map((filter): Offer => ({ kind: "value", filter, value: text, text }));
  const known = filters.flatMap((filter) => knownValues(filter, text).slice(0, 5));
  const first = written.filter(({ filter }) => filter.kind === "text" && filter.first);
  return distinct([...named, ...first, ...known, ...written]).slice(0, MOST);
}

function valuesOf(filter: Filter, text: string, zone: Zone, now: number): readonly Offer[] {
  if (filter.kind === "time") return times(filter, text, zone, now);
  if (filter.kind === "whole") return wholes(filter, text);
  const known = knownValues(filter, text);
  if (filter.kind === "choice" || !text) return known.slice(0, 50);
  const exact = known.filter((offer) => offer.kind === "value" && offer.value === text);
  const written: Offer[] = exact.length > 0 ? exact : [{ kind: "value", filter, value: text, text }];
  return distinct([...written, ...known]).slice(0, 50);
}

function knownValues(filter: Filter, text: string): readonly Offer[] {
  const pairs =
    filter.kind === "choice"
      ? filter.options.map(([value, shown, listed = shown]) => [value, listed] as const)
      : filter.kind === "text"
        ? (filter.suggestions ?? []).map((value) =>
            typeof value === "string" ? ([value, value] as const) : value,
          )
        : [];
  return pairs
    .filter(([, shown]) => shown.toLowerCase().includes(text.toLowerCase()))
    .map(([value, shown]) => ({ kind: "value", filter, value, text: shown }));
}

function wholes(filter: Filter & { kind: "whole" }, text: string): readonly Offer[] {
  const value = Number(text);
  const fits = /^\d+$/.test(text) && value >= filter.least && value <= filter.most;
  return fits ? [{ kind: "value", filter, value, text }] : [];
}

const MINUTE = 60_000;
const RECENT: readonly (readonly [string, number])[] = [
  [texts.minutesAgo15, 15 * MINUTE],
  [texts.hourAgo, 60 * MINUTE],
  [texts.hoursAgo6, 6 * 60 * MINUTE],
  [texts.hoursAgo24, 24 * 60 * MINUTE],
  [texts.daysAgo7, 7 * 24 * 60 * MINUTE],
];

function times(filter: Filter, text: string, zone: Zone, now: number): readonly Offer[] {
  if (!text) {
    return RECENT.map(([shown, back]) => {
      const value = new Date(now - back).toISOString();
      return { kind: "value", filter, value, text: `${shown}, ${moment(value, zone)}` };
    });
  }
  const found = timeIn(text, zone, now);
  if (!found) return [];
  return [{ kind: "value", filter, value: found, text: `${moment(found, zone)} ${zoneName(zone)}` }];
}

function zoneName(zone: Zone): string {
  return zone === "utc" ? "UTC" : texts.localTime;
}

/** What to write for a filter: below the field while it is chosen. */
export function hintOf(filter: Filter): string {
  if (filter.kind === "time") return texts.timeHint;
  if (filter.kind === "whole") return texts.wholeHint(filter.least, filter.most);
  if (filter.kind === "text") return filter.hint ?? texts.textHint;
  return texts.choiceHint;
}

/** How the value of an active filter reads. */
export function wordsOf(filter: Filter, value: unknown, zone: Zone): string {
  if (filter.kind === "time") return moment(String(value), zone);
  if (filter.kind === "choice") {
    return filter.options.find(([option]) => option === value)?.[1] ?? String(value);
  }
  return (filter.kind === "text" && filter.shown) || String(value);
}

function distinct(offers: readonly Offer[]): readonly Offer[] {
  return [...new Map(offers.map((offer) => [keyOf(offer), offer])).values()];
}

export function keyOf(offer: Offer): string {
  return offer.kind === "filter" ? offer.filter.name : `${offer.filter.name}=${offer.value}`;
}
