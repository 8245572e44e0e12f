import { describe, expect, it } from "vitest";
import { chainAddress } from "~/api/chains";
import { changed, read } from "~/lib/url-state";
import { oneChain } from "./address";

describe("the address of a chain", () => {
  it("round-trips IDs with commas and percent signs, and the empty ID", () => {
    const open = new Set(["a,b", "100%", "", "ü/ü"]);
    const search = changed(oneChain, "", { open });
    expect(read(oneChain, search).open).toEqual(open);
    expect(read(oneChain, "?open=%25E0%25A4").open).toEqual(new Set());
  });

  it("moves IDs that are not valid in a path to the query string", () => {
    expect(chainAddress("5c73762f-7c66")).toBe("/chains/5c73762f-7c66");
    expect(chainAddress("..")).toBe("/chains/-?id=..");
    expect(chainAddress("-")).toBe("/chains/-?id=-");
    expect(chainAddress("a/b?c")).toBe("/chains/-?id=a%2Fb%3Fc");
  });
});
