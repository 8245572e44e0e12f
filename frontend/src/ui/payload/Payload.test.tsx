import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { Payload, type PayloadProps } from ".";

describe("Payload", () => {
  it("shows JSON as a tree, with exact numbers and markup as text", () => {
    show({
      content: '{"id": 9007199254740993, "n": 1.50, "name": "<img src=x onerror=alert(1)>", "token": "***"}',
    });
    const tree = screen.getByRole("tree", { name: "Body" });
    expect(rowTexts(tree)).toEqual([
      "{ 4 members }",
      "id9007199254740993",
      "n1.50",
      'name"<img src=x onerror=alert(1)>"',
      "token masked",
    ]);
    expect(document.querySelector("img")).toBeNull();
  });

  it("navigates, collapses and expands the tree with arrow keys", async () => {
    show({ content: '{"a": [1, 2], "b": 3}' });
    screen.getAllByRole("treeitem")[0]?.focus();
    await userEvent.keyboard("{ArrowDown}{ArrowLeft}");
    expect(rowTexts(screen.getByRole("tree"))).toEqual(["{ 2 members }", "a[ 2 items ]", "b3"]);
    await userEvent.keyboard("{ArrowRight}{ArrowRight}{End}{Home}{ArrowDown}{ArrowDown}");
    expect(document.activeElement?.textContent).toBe("01");
    await userEvent.keyboard("{ArrowLeft}");
    expect(document.activeElement?.textContent).toBe("a[ 2 items ]");
  });

  it("shows invalid JSON as raw text", () => {
    show({ content: '{"cut": ', truncated: true, size: 300_000 });
    expect(screen.queryByRole("tab", { name: "Tree" })).toBeNull();
    expect(screen.getByRole("region", { name: "Body" }).textContent).toBe('{"cut": ');
    expect(screen.getByText("Truncated: only the beginning of 300 kB is shown.")).toBeDefined();
  });

  it("shows binary content as a hex dump", () => {
    show({ content: btoa("GIF89a\u0000\u00ff 0123456789"), encoding: "base64", content_type: "image/gif" });
    expect(screen.getAllByRole("tab").map((tab) => tab.textContent)).toEqual(["Hex"]);
    expect(screen.getByRole("region").textContent).toBe(
      "00000000  47 49 46 38 39 61 00 ff  20 30 31 32 33 34 35 36  GIF89a·· 0123456\n" +
        "00000010  37 38 39                                          789",
    );
  });

  it("explains why the body is not shown", () => {
    show({ content: null, encoding: null, masked: true, size: 5_000_000 });
    expect(screen.getByText("The body is not shown.")).toBeDefined();
  });

  it.each([
    [{}, "Encrypted with key 2026-11.", "Reveal decrypts it."],
    [{ can_reveal: false }, "Encrypted with key 2026-11.", "This service does not have the key."],
    [
      { key_id: null, stored_size: 5_000_000 },
      "Stored outside of the database, 5 MB.",
      "Reveal fetches it from the store.",
    ],
    [
      { key_id: null, stored_size: 5_000_000, can_reveal: false },
      "Stored outside of the database, 5 MB.",
      "This service has no store of large bodies.",
    ],
    [
      { stored_size: 5_000_000 },
      "Encrypted with key 2026-11, and stored outside of the database, 5 MB.",
      "Reveal fetches it from the store and decrypts it.",
    ],
    [{ error: "it was changed" }, "Encrypted with key 2026-11.", "It could not be read: it was changed."],
  ])("says how a body is kept that is not in the message: %j", (access, kept, read) => {
    // Ciphertext, which a service without the key reveals, is not shown as bytes.
    const content = "can_reveal" in access || "error" in access ? btoa("\u0000\u00ff") : null;
    show({
      content,
      encoding: content === null ? null : "base64",
      access: { key_id: "2026-11", stored_size: null, can_reveal: true, error: null, ...access },
    });
    expect(screen.getByText(kept)).toBeDefined();
    expect(screen.getByText(read)).toBeDefined();
    expect(screen.queryByRole("tab", { name: "Hex" })).toBeNull();
  });

  it("shows a body that was encrypted as any other once it is revealed", () => {
    show({ content: '{"a": 1}', access: { key_id: "1", stored_size: 9, can_reveal: true, error: null } });
    expect(screen.getByRole("tree", { name: "Body" })).toBeDefined();
  });
});

function show(changes: Partial<PayloadProps["of"]>) {
  const content = changes.content ?? "";
  render(
    <Payload
      of={{
        content,
        encoding: "json",
        content_type: "application/json",
        size: content.length,
        truncated: false,
        masked: false,
        access: null,
        ...changes,
      }}
    />,
  );
}

function rowTexts(tree: HTMLElement): (string | null)[] {
  return within(tree)
    .getAllByRole("treeitem")
    .map((item) => item.textContent);
}
