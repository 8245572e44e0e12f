import { QueryClientProvider, QueryObserver } from "@tanstack/react-query";
import { cleanup, configure, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type DeadLetter, deadLetter } from "~/api/dead-letter";
import { newQueryClient } from "~/api/queries";
import { ADA } from "~/testing/ada";
import { pendingAnnouncements } from "~/ui/announce";
import type { RepairDialogProps } from "./types";

/** A fake server: records dry runs and changes in order, and returns the prepared responses. */
const served = vi.hoisted(() => {
  const state = {
    requests: [] as { path: string; body: Record<string, unknown>; key: string | null }[],
    reads: [] as string[],
    dryRuns: [] as (() => Response)[],
    changes: [] as (() => Response)[],
  };
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const path = new URL(request.url).pathname;
    if (request.method === "GET") state.reads.push(path);
    if (request.method === "GET") return Response.json(path.endsWith("/session") ? ADA : { queues: [] });
    const body = (await request.json()) as Record<string, unknown>;
    state.requests.push({ path, body, key: request.headers.get("idempotency-key") });
    const answers = body.dry_run ? state.dryRuns : state.changes;
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (!answer) throw new TypeError("no response");
    return answer();
  };
  return state;
});

// A busy machine is slow.
configure({ asyncUtilTimeout: 8_000 });

const { RepairDialog } = await import("./RepairDialog");

const changes = () => served.requests.filter(({ body }) => !body.dry_run);
const dryRuns = () => served.requests.filter(({ body }) => body.dry_run);

function dryRun(count: number, token = `token of ${count}`, warnings: string[] = []): () => Response {
  const found = {
    dry_run: true,
    action: "requeue",
    count,
    by_queue: { mail: count },
    by_exception: { E: count },
  };
  const expires_at = new Date(Date.now() + 900_000).toISOString();
  return () => Response.json({ ...found, sample: [], warnings, confirm_token: token, expires_at });
}

function refusal(status: number, code: string, more: object = {}): () => Response {
  const problem = { title: "No", detail: "It was refused.", status, code, request_id: "r-1", ...more };
  return () => Response.json(problem, { status, headers: { "content-type": "application/problem+json" } });
}

function done(...outcomes: [id: string, outcome: string, reason?: string][]): () => Response {
  const items = outcomes.map(([id, outcome, reason = ""]) => ({ id, outcome, reason }));
  const counts: Record<string, number> = {};
  for (const { outcome } of items) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return () => Response.json({ action: "requeue", counts, items });
}

function renderDialog(props: Partial<RepairDialogProps> = {}) {
  const onClose = vi.fn();
  const onDone = vi.fn();
  const all = { action: "requeue", describe: "them", onClose, onDone, ...props } as RepairDialogProps;
  const given = { ...all, selector: props.selector ?? { ids: ["17", "18"] } };
  const queries = newQueryClient();
  const tree = (now: RepairDialogProps) => (
    <QueryClientProvider client={queries}>
      <RepairDialog {...now} />
    </QueryClientProvider>
  );
  const { rerender } = render(tree(given));
  const read = (id: string) =>
    new QueryObserver(queries, {
      ...deadLetter(id),
      initialData: {} as DeadLetter,
      staleTime: 60_000,
    }).subscribe(() => {});
  const change = (changes: Partial<RepairDialogProps>) => rerender(tree({ ...given, ...changes }));
  return { onClose, onDone, change, read, user: userEvent.setup() };
}

async function button(name: string | RegExp): Promise<HTMLElement> {
  const found = await screen.findByRole("button", { name });
  await waitFor(() => expect(found.getAttribute("aria-disabled")).not.toBe("true"));
  return found;
}

beforeEach(() => {
  Object.assign(served, { requests: [], reads: [], dryRuns: [dryRun(2)], changes: [] });
});

describe("the repair dialog", () => {
  it("reloads the dead letters that it did not delete, not the deleted ones", async () => {
    served.changes = [done(["17", "purged"], ["18", "refused", "it was not discarded"])];
    const { user, read } = renderDialog({ action: "purge" });
    for (const id of ["17", "18"]) read(id);
    await user.type(screen.getByLabelText("Reason"), "a test");
    await user.click(await button("Delete permanently 2"));
    await waitFor(() => expect(served.reads).toContainEqual(expect.stringMatching(/dlq\/18$/)));
    expect(served.reads).not.toContainEqual(expect.stringMatching(/dlq\/17$/));
  });

  it("keeps one dead letter that was not changed, with the reason", async () => {
    Object.assign(served, { dryRuns: [dryRun(1)] });
    served.changes = [done(["17", "refused", "the queue mail does not exist"])];
    const { user, onDone, onClose } = renderDialog({ selector: { ids: ["17"] } });
    await user.click(await button("Requeue 1"));
    await screen.findByText("the queue mail does not exist");
    expect(pendingAnnouncements.get().at(-1)).toMatchObject({ tone: "bad" });
    expect([onDone.mock.calls, onClose.mock.calls]).toEqual([[], []]);
  });

  it("uses the singular for one dead letter", async () => {
    renderDialog({ selector: { ids: ["17"] } });
    expect(screen.getByRole("checkbox", { name: /^Requeue even if it is older/ })).toBeDefined();
    expect(screen.getByRole("option", { name: "Original queue" })).toBeDefined();
    expect(screen.getByRole("option", { name: "Republish to all bound queues" })).toBeDefined();
  });

  it("retries with the same key if the response was lost", async () => {
    const lost = () => {
      throw new TypeError("connection reset");
    };
    served.changes = [lost, done(["17", "requeued"], ["18", "skipped", "in operation 7"])];
    const { user, onDone } = renderDialog();
    await user.click(await button("Requeue 2"));
    await user.click(await button("Try again"));
    const row = await screen.findByRole("row", { name: /18/ });
    expect(within(row).getByText("in operation 7")).toBeDefined();
    const [first, second] = changes();
    expect(first?.key).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toEqual(first);
    expect(onDone).toHaveBeenCalledOnce();
  });

  it("keeps its selection when the list's selection is cleared", async () => {
    const { change, user } = renderDialog();
    await button("Requeue 2");
    change({ selector: { ids: [] }, describe: "nothing" });
    served.dryRuns = [dryRun(1)];
    await user.type(screen.getByLabelText("Limit"), "1");
    await button("Requeue 1");
    expect(dryRuns().map(({ body }) => body.selector)).toEqual([
      { ids: ["17", "18"] },
      { ids: ["17", "18"] },
    ]);
  });

  it("waits for the response while the same request is still running", async () => {
    served.changes = [refusal(409, "request_running"), done(["17", "requeued"])];
    const { user, onClose } = renderDialog({ selector: { ids: ["17"] } });
    await user.click(await button("Requeue 2"));
    await waitFor(() => expect(onClose).toHaveBeenCalled());
    expect(new Set(changes().map(({ key }) => key)).size).toBe(1);
  });

  it("shows both counts if they differ, and can exclude new dead letters", async () => {
    const response = dryRun(224);
    const at = { headers: { date: "Fri, 20 Nov 2026 20:15:03 GMT" } };
    served.dryRuns = [() => new Response(response().body, at), dryRun(224, "second")];
    served.changes = [refusal(409, "count_drifted", { expected: 224, found: 226 })];
    const { user } = renderDialog({ selector: { group_id: "8f1c" } });
    await user.type(await screen.findByLabelText("Type 224 to confirm"), "224");
    await user.click(await button("Requeue 224"));
    expect(await screen.findByText(/found 224 dead letters, now there are 226/)).toBeDefined();
    await user.click(await button("Exclude new dead letters"));
    await waitFor(() => expect(dryRuns()).toHaveLength(2));
    expect(dryRuns()[1]?.body.selector).toEqual({
      filter: { group_id: "8f1c", failed_before: "2026-11-20T20:15:04.000Z" },
    });
  });

  it("repeats an expired dry run and says so", async () => {
    served.dryRuns = [dryRun(2), dryRun(3)];
    served.changes = [refusal(428, "confirmation_required", { reason: "expired" })];
    const { user } = renderDialog();
    await user.click(await button("Requeue 2"));
    expect(await screen.findByText(/The dry run expired/)).toBeDefined();
    await button("Requeue 3");
  });

  it("requires the typed count and the confirmation token for a filter", async () => {
    served.changes = [refusal(503, "database_unavailable")];
    const { user } = renderDialog({ selector: { filter: { status: "open" } } });
    const field = await screen.findByLabelText("Type 2 to confirm");
    await user.type(field, "3");
    await user.click(screen.getByRole("button", { name: "Requeue 2" }));
    expect(changes()).toHaveLength(0);
    await user.clear(field);
    await user.type(field, "2");
    await user.click(await button("Requeue 2"));
    await waitFor(() => expect(changes()).toHaveLength(1));
    expect(changes()[0]?.body.confirm_token).toBe("token of 2");
    expect(await screen.findByText("r-1")).toBeDefined();
  });

  it("repeats the dry run once after relevant input", async () => {
    const { user } = renderDialog();
    await button("Requeue 2");
    served.dryRuns = [dryRun(1)];
    await user.type(screen.getByLabelText("Maximum rate (messages/s)"), "5");
    await user.type(screen.getByLabelText("Limit"), "12");
    await button("Requeue 1");
    expect(dryRuns().map(({ body }) => body.max_items)).toEqual([undefined, 12]);
  });

  it("shows rejected values next to their field", async () => {
    const errors = [{ at: "body.rate_per_second", message: "slower, please" }];
    served.changes = [refusal(422, "invalid_request", { errors })];
    const { user } = renderDialog();
    await user.type(await screen.findByLabelText("Maximum rate (messages/s)"), "9");
    await user.click(await button("Requeue 2"));
    await screen.findAllByText("slower, please");
    const field = screen.getByLabelText("Maximum rate (messages/s)");
    expect(field.getAttribute("aria-invalid")).toBe("true");
    expect(screen.queryByText("It was refused.")).toBeNull();
  });

  it("requires a reason to delete permanently", async () => {
    served.changes = [done(["17", "purged"])];
    const { user } = renderDialog({ action: "purge", selector: { ids: ["17"] } });
    await screen.findByText(/would be deleted/);
    expect(screen.getByRole("button", { name: /^Delete permanently/ }).getAttribute("aria-disabled")).toBe(
      "true",
    );
    await user.type(screen.getByLabelText("Reason"), "a test");
    await user.click(await button(/^Delete permanently/));
    await waitFor(() => expect(changes()[0]?.body).toMatchObject({ purge: true, reason: "a test" }));
  });

  it("asks before closing with unsaved input, however it is closed", async () => {
    const ask = vi.fn().mockReturnValue(false);
    vi.stubGlobal("confirm", ask);
    const { user, onClose } = renderDialog();
    await user.type(await screen.findByRole("textbox", { name: /Reason/ }), "the bank is back");
    await user.keyboard("{Escape}");
    for (const way of screen.getAllByRole("button", { name: "Close" })) await user.click(way);
    expect(ask).toHaveBeenCalledTimes(3);
    expect(onClose).not.toHaveBeenCalled();
    ask.mockReturnValue(true);
    await user.keyboard("{Escape}");
    expect(onClose).toHaveBeenCalledOnce();
    vi.unstubAllGlobals();
  });

  it("shows no safety options for a single dead letter", async () => {
    served.dryRuns = [dryRun(1)];
    renderDialog({ selector: { ids: ["17"] } });
    await button("Requeue 1");
    expect(screen.queryByRole("group", { name: "Safety" })).toBeNull();
    expect(screen.queryByLabelText("Limit")).toBeNull();
  });

  it("focuses itself if it starts with a choice, or else its first field", async () => {
    renderDialog();
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("dialog")));
    cleanup();
    renderDialog({ action: "discard", selector: { ids: ["17"] } });
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("textbox", { name: /Reason/ })));
  });
});
