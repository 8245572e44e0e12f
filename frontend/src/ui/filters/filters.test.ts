import { describe, expect, it } from "vitest";
import { type Filter, formatValue, type Offer, offersFor } from "./filters";

const NOW = Date.parse("2026-11-20T17:30:00Z");
const search: Filter = { name: "q", label: "Search", kind: "text", first: true };
const queue: Filter = { name: "queue", label: "Queue", kind: "text", suggestions: ["mail", "billing"] };
const source: Filter = {
  name: "source",
  label: "Dead-lettered by",
  kind: "choice",
  options: [
    ["worker", "a worker"],
    ["relay", "the relay"],
  ],
};
const after: Filter = { name: "after", label: "Failed after", kind: "time" };
const failures: Filter = { name: "failures", label: "Failures", kind: "integer", min: 1, max: 100 };
const filters = [queue, source, after, failures, search];

describe("offersFor", () => {
  it("offers all filters for empty input", () => {
    expect(offersOf(undefined, "")).toEqual(["queue", "source", "after", "failures", "q"]);
  });

  it("finds filters by name and known values, and offers the text to text filters", () => {
    expect(offersOf(undefined, "fail")).toEqual(["after", "failures", "q=fail", "queue=fail"]);
    expect(offersOf(undefined, "bill")).toEqual(["q=bill", "queue=billing", "queue=bill"]);
    expect(offersOf(undefined, "RELAY")).toEqual(["q=RELAY", "source=relay", "queue=RELAY"]);
  });

  it("offers the typed text before suggestions, so that Enter accepts it", () => {
    expect(offersOf(queue, "")).toEqual(["queue=mail", "queue=billing"]);
    expect(offersOf(queue, " il ")).toEqual(["queue=il", "queue=mail", "queue=billing"]);
    expect(offersOf(queue, "mail")).toEqual(["queue=mail"]);
  });

  it("accepts only integers within the bounds", () => {
    expect(offersOf(failures, "7")).toEqual(["failures=7"]);
    for (const text of ["0", "101", "1e2", "1.5", "-3", "x", ""])
      expect(offersOf(failures, text)).toEqual([]);
  });

  it("accepts absolute and relative times", () => {
    expect(offersOf(after, "")[1]).toBe("after=2026-11-20T16:30:00.000Z");
    expect(offersOf(after, "90 min")).toEqual(["after=2026-11-20T16:00:00.000Z"]);
    expect(offersOf(after, "9:05")).toEqual(["after=2026-11-20T09:05:00.000Z"]);
    expect(offersOf(after, "soon")).toEqual([]);
  });
});

describe("formatValue", () => {
  it("formats values as the user chose them", () => {
    expect(formatValue(source, "relay", "utc")).toBe("the relay");
    expect(formatValue(after, "2026-11-20T09:05:00.000Z", "utc")).toBe("2026-11-20 09:05:00");
    expect(formatValue(failures, 7, "utc")).toBe("7");
  });
});

function offersOf(chosen: Filter | undefined, typed: string): string[] {
  return offersFor(filters, chosen, typed, "utc", NOW).map(toText);
}

function toText(offer: Offer): string {
  return offer.kind === "filter" ? offer.filter.name : `${offer.filter.name}=${offer.value}`;
}
