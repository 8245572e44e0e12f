// Definitions of filters, and the suggestions of the filter field.

import { moment, type Zone } from "~/lib/format";
import * as texts from "~/texts/filters";
import { parseTime } from "./times";

interface Named<N extends string> {
  /** Name of its URL parameter. */
  name: N;
  /** Label: "Routing key". */
  label: string;
}

export type Filter<N extends string = string> = Named<N> &
  (
    | {
        kind: "text";
        /** Suggested values, optionally with another text for the list, for example with a count. */
        suggestions?: readonly (string | readonly [string, string])[] | undefined;
        /** Accepted input: "a full id", "order.* for a prefix". */
        hint?: string;
        /** Display text of the current value, such as a group's title. */
        shown?: string | undefined;
        /** Offers text typed without choosing a filter to this filter first. */
        first?: boolean;
      }
    /** Values with their labels, and optionally another text for the list. */
    | { kind: "choice"; options: readonly (readonly [string, string, string?])[] }
    | { kind: "time" }
    | { kind: "integer"; min: number; max: number }
  );

export type Offer =
  /** Chooses a filter, to select its value next. */
  | { kind: "filter"; filter: Filter }
  /** Sets a filter to a value. */
  | { kind: "value"; filter: Filter; value: string | number; text: string };

const MAX_OFFERS = 12;

/** Suggestions for the typed text; with `chosen`, only values of that filter. */
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
  return deduplicate([...named, ...first, ...known, ...written]).slice(0, MAX_OFFERS);
}

function valuesOf(filter: Filter, text: string, zone: Zone, now: number): readonly Offer[] {
  if (filter.kind === "time") return times(filter, text, zone, now);
  if (filter.kind === "integer") return integers(filter, text);
  const known = knownValues(filter, text);
  if (filter.kind === "choice" || !text) return known.slice(0, 50);
  const exact = known.filter((offer) => offer.kind === "value" && offer.value === text);
  const written: Offer[] = exact.length > 0 ? exact : [{ kind: "value", filter, value: text, text }];
  return deduplicate([...written, ...known]).slice(0, 50);
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

function integers(filter: Filter & { kind: "integer" }, text: string): readonly Offer[] {
  const value = Number(text);
  const fits = /^\d+$/.test(text) && value >= filter.min && value <= filter.max;
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
  const found = parseTime(text, zone, now);
  if (!found) return [];
  return [{ kind: "value", filter, value: found, text: `${moment(found, zone)} ${zoneName(zone)}` }];
}

function zoneName(zone: Zone): string {
  return zone === "utc" ? "UTC" : texts.localTime;
}

/** Input hint of a filter, shown below the field while it is chosen. */
export function hintOf(filter: Filter): string {
  if (filter.kind === "time") return texts.timeHint;
  if (filter.kind === "integer") return texts.wholeHint(filter.min, filter.max);
  if (filter.kind === "text") return filter.hint ?? texts.textHint;
  return texts.choiceHint;
}

/** Display text of an active filter's value. */
export function formatValue(filter: Filter, value: unknown, zone: Zone): string {
  if (filter.kind === "time") return moment(String(value), zone);
  if (filter.kind === "choice") {
    return filter.options.find(([option]) => option === value)?.[1] ?? String(value);
  }
  return (filter.kind === "text" && filter.shown) || String(value);
}

function deduplicate(offers: readonly Offer[]): readonly Offer[] {
  return [...new Map(offers.map((offer) => [keyOf(offer), offer])).values()];
}

export function keyOf(offer: Offer): string {
  return offer.kind === "filter" ? offer.filter.name : `${offer.filter.name}=${offer.value}`;
}
