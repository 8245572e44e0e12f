import { describe, expect, it } from "vitest";
import { type Filter, type Offer, offersFor, wordsOf } from "./filters";

const NOW = Date.parse("2026-11-20T17:30:00Z");
const search: Filter = { name: "q", label: "Search", kind: "text", first: true };
const queue: Filter = { name: "queue", label: "Queue", kind: "text", suggestions: ["mail", "billing"] };
const source: Filter = {
  name: "source",
  label: "Given up by",
  kind: "choice",
  options: [
    ["worker", "a worker"],
    ["relay", "the relay"],
  ],
};
const after: Filter = { name: "after", label: "Failed after", kind: "time" };
const failures: Filter = { name: "failures", label: "Failures", kind: "whole", least: 1, most: 100 };
const filters = [queue, source, after, failures, search];

describe("offersFor", () => {
  it("offers the filters before anything is typed", () => {
    expect(offered(undefined, "")).toEqual(["queue", "source", "after", "failures", "q"]);
  });

  it("finds filters by name, values that are known, and offers text to those that take any", () => {
    expect(offered(undefined, "fail")).toEqual(["after", "failures", "q=fail", "queue=fail"]);
    expect(offered(undefined, "bill")).toEqual(["q=bill", "queue=billing", "queue=bill"]);
    expect(offered(undefined, "RELAY")).toEqual(["q=RELAY", "source=relay", "queue=RELAY"]);
  });

  it("puts what was typed before what is suggested, so that Enter means it", () => {
    expect(offered(queue, "")).toEqual(["queue=mail", "queue=billing"]);
    expect(offered(queue, " il ")).toEqual(["queue=il", "queue=mail", "queue=billing"]);
    expect(offered(queue, "mail")).toEqual(["queue=mail"]);
  });

  it("takes whole numbers within their bounds, and nothing else", () => {
    expect(offered(failures, "7")).toEqual(["failures=7"]);
    for (const text of ["0", "101", "1e2", "1.5", "-3", "x", ""]) expect(offered(failures, text)).toEqual([]);
  });

  it("takes times as moments and as how long ago", () => {
    expect(offered(after, "")[1]).toBe("after=2026-11-20T16:30:00.000Z");
    expect(offered(after, "90 min")).toEqual(["after=2026-11-20T16:00:00.000Z"]);
    expect(offered(after, "9:05")).toEqual(["after=2026-11-20T09:05:00.000Z"]);
    expect(offered(after, "soon")).toEqual([]);
  });
});

describe("wordsOf", () => {
  it("says values as a person chose them", () => {
    expect(wordsOf(source, "relay", "utc")).toBe("the relay");
    expect(wordsOf(after, "2026-11-20T09:05:00.000Z", "utc")).toBe("2026-11-20 09:05:00");
    expect(wordsOf(failures, 7, "utc")).toBe("7");
  });
});

function offered(chosen: Filter | undefined, typed: string): string[] {
  return offersFor(filters, chosen, typed, "utc", NOW).map(named);
}

function named(offer: Offer): string {
  return offer.kind === "filter" ? offer.filter.name : `${offer.filter.name}=${offer.value}`;
}
