import { QueryClientProvider, QueryObserver } from "@tanstack/react-query";
import { cleanup, configure, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type DeadLetter, deadLetter } from "~/api/dead-letter";
import { newQueryClient } from "~/api/queries";
import type { RepairDialogProps } from "./types";

/** Requests that change something or look, in their order, and what each is answered. */
const served = vi.hoisted(() => {
  const state = {
    requests: [] as { path: string; body: Record<string, unknown>; key: string | null }[],
    reads: [] as string[],
    looks: [] as (() => Response)[],
    changes: [] as (() => Response)[],
  };
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const path = new URL(request.url).pathname;
    if (request.method === "GET") state.reads.push(path);
    if (request.method === "GET") return Response.json(path.endsWith("/session") ? ADA : { queues: [] });
    const body = (await request.json()) as Record<string, unknown>;
    state.requests.push({ path, body, key: request.headers.get("idempotency-key") });
    const answers = body.dry_run ? state.looks : state.changes;
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (!answer) throw new TypeError("no response");
    return answer();
  };
  const ADA = {
    name: "ada",
    role: "admin",
    read_only: false,
    permissions: { repair: true, pause: true, purge: true, reveal: true, read_audit: true },
  };
  return state;
});

// A machine that is busy with other things takes its time.
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 8_000 });

const { RepairDialog } = await import("./RepairDialog");

const changes = () => served.requests.filter(({ body }) => !body.dry_run);
const looks = () => served.requests.filter(({ body }) => body.dry_run);

function plan(count: number, token = `token of ${count}`, warnings: string[] = []): () => Response {
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

function shown(props: Partial<RepairDialogProps> = {}) {
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
  Object.assign(served, { requests: [], reads: [], looks: [plan(2)], changes: [] });
});

describe("the dialog that repairs", () => {
  it("does not ask again for what it deleted for good, but for what it left", async () => {
    served.changes = [done(["17", "purged"], ["18", "refused", "it was not discarded"])];
    const { user, read } = shown({ action: "purge" });
    for (const id of ["17", "18"]) read(id);
    await user.type(screen.getByLabelText("Reason"), "a test");
    await user.click(await button("Delete permanently 2"));
    await waitFor(() => expect(served.reads).toContainEqual(expect.stringMatching(/dlq\/18$/)));
    expect(served.reads).not.toContainEqual(expect.stringMatching(/dlq\/17$/));
  });

  it("speaks of one where it is about one dead letter", async () => {
    shown({ selector: { ids: ["17"] } });
    expect(screen.getByRole("checkbox", { name: /^Requeue even if it is older/ })).toBeDefined();
    expect(screen.getByRole("option", { name: "Original queue" })).toBeDefined();
    expect(screen.getByRole("option", { name: "Republish to all bound queues" })).toBeDefined();
  });

  it("asks again under the same key when the answer was lost", async () => {
    const lost = () => {
      throw new TypeError("connection reset");
    };
    served.changes = [lost, done(["17", "requeued"], ["18", "skipped", "in operation 7"])];
    const { user, onDone } = shown();
    await user.click(await button("Requeue 2"));
    await user.click(await button("Try again"));
    const row = await screen.findByRole("row", { name: /18/ });
    expect(within(row).getByText("in operation 7")).toBeDefined();
    const [first, second] = changes();
    expect(first?.key).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toEqual(first);
    expect(onDone).toHaveBeenCalledOnce();
  });

  it("stays at what was meant when the selection behind it is cleared", async () => {
    const { change, user } = shown();
    await button("Requeue 2");
    change({ selector: { ids: [] }, describe: "nothing" });
    served.looks = [plan(1)];
    await user.type(screen.getByLabelText("Limit"), "1");
    await button("Requeue 1");
    expect(looks().map(({ body }) => body.selector)).toEqual([{ ids: ["17", "18"] }, { ids: ["17", "18"] }]);
  });

  it("waits for the answer of the same request while it is still running", async () => {
    served.changes = [refusal(409, "request_running"), done(["17", "requeued"])];
    const { user, onClose } = shown({ selector: { ids: ["17"] } });
    await user.click(await button("Requeue 2"));
    await waitFor(() => expect(onClose).toHaveBeenCalled());
    expect(new Set(changes().map(({ key }) => key)).size).toBe(1);
  });

  it("shows both numbers when they drifted apart, and leaves out what died since if asked to", async () => {
    const dated = plan(224);
    const at = { headers: { date: "Fri, 20 Nov 2026 20:15:03 GMT" } };
    served.looks = [() => new Response(dated().body, at), plan(224, "second")];
    served.changes = [refusal(409, "count_drifted", { expected: 224, found: 226 })];
    const { user } = shown({ selector: { group_id: "8f1c" } });
    await user.type(await screen.findByLabelText("Type 224 to confirm"), "224");
    await user.click(await button("Requeue 224"));
    expect(await screen.findByText(/found 224 dead letters, now there are 226/)).toBeDefined();
    await user.click(await button("Exclude new dead letters"));
    await waitFor(() => expect(looks()).toHaveLength(2));
    expect(looks()[1]?.body.selector).toEqual({
      filter: { group_id: "8f1c", failed_before: "2026-11-20T20:15:04.000Z" },
    });
  });

  it("looks again and says so when the dry run was too old", async () => {
    served.looks = [plan(2), plan(3)];
    served.changes = [refusal(428, "confirmation_required", { reason: "expired" })];
    const { user } = shown();
    await user.click(await button("Requeue 2"));
    expect(await screen.findByText(/The dry run expired/)).toBeDefined();
    await button("Requeue 3");
  });

  it("takes a filter's repair only with its number typed, and the token of its dry run", async () => {
    served.changes = [refusal(503, "database_unavailable")];
    const { user } = shown({ selector: { filter: { status: "open" } } });
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

  it("looks again once after what matters to it was typed", async () => {
    const { user } = shown();
    await button("Requeue 2");
    served.looks = [plan(1)];
    await user.type(screen.getByLabelText("Maximum rate (messages/s)"), "5");
    await user.type(screen.getByLabelText("Limit"), "12");
    await button("Requeue 1");
    expect(looks().map(({ body }) => body.max_items)).toEqual([undefined, 12]);
  });

  it("says what the service refuses next to the field that it is about", async () => {
    const errors = [{ at: "body.rate_per_second", message: "slower, please" }];
    served.changes = [refusal(422, "invalid_request", { errors })];
    const { user } = shown();
    await user.type(await screen.findByLabelText("Maximum rate (messages/s)"), "9");
    await user.click(await button("Requeue 2"));
    await screen.findAllByText("slower, please");
    const field = screen.getByLabelText("Maximum rate (messages/s)");
    expect(field.getAttribute("aria-invalid")).toBe("true");
    expect(screen.queryByText("It was refused.")).toBeNull();
  });

  it("deletes for good only with a reason", async () => {
    served.changes = [done(["17", "purged"])];
    const { user } = shown({ action: "purge", selector: { ids: ["17"] } });
    await screen.findByText(/would be deleted/);
    expect(screen.getByRole("button", { name: /^Delete permanently/ }).getAttribute("aria-disabled")).toBe(
      "true",
    );
    await user.type(screen.getByLabelText("Reason"), "a test");
    await user.click(await button(/^Delete permanently/));
    await waitFor(() => expect(changes()[0]?.body).toMatchObject({ purge: true, reason: "a test" }));
  });

  it("asks before it closes once something was typed, whichever way", async () => {
    const ask = vi.fn().mockReturnValue(false);
    vi.stubGlobal("confirm", ask);
    const { user, onClose } = shown();
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

  it("does not ask how carefully a single one goes", async () => {
    served.looks = [plan(1)];
    shown({ selector: { ids: ["17"] } });
    await button("Requeue 1");
    expect(screen.queryByRole("group", { name: "Safety" })).toBeNull();
    expect(screen.queryByLabelText("Limit")).toBeNull();
  });

  it("has focus itself where it begins with a choice, or else its first field has", async () => {
    shown();
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("dialog")));
    cleanup();
    shown({ action: "discard", selector: { ids: ["17"] } });
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole("textbox", { name: /Reason/ })));
  });
});
