// Repairs on the wire: what is asked of the API, and what it answers.

import { client, dataOf, type Schemas } from "./client";

export type Action = Schemas["Action"];
export type Operation = Schemas["OperationResponse"];
export type Repaired = Schemas["RepairResponse"];

export type Selector = { ids: string[] } | { filter: Schemas["DeadLetterFilters"] } | { group_id: string };

/** What is to be done, to which dead letters: what a dry run is about, and what its token is good for. */
export interface RepairRequest {
  action: Action;
  selector: Selector;
  destination: Schemas["RequeueRequest"]["destination"];
  maxItems: number | undefined;
  force: boolean;
  edit: Schemas["EditRequest"] | undefined;
}

/** How carefully, and why: it may change after the dry run. */
export interface ExecutionOptions {
  rate: number | undefined;
  canary: Schemas["CanaryRequest"] | undefined;
  stopRatio: number | undefined;
  startsAt: string | undefined;
  reason: string | undefined;
}

export interface SampleItem {
  id: string;
  queue: string;
  error: { type: string; message: string };
  failedAt: string;
  preview: string;
}

/** What a dry run found. */
export interface DryRun {
  count: number;
  byQueue: Record<string, number>;
  byException: Record<string, number>;
  sample: readonly SampleItem[];
  warnings: readonly string[];
  token: string;
  expiresAt: string;
  /** When it was answered, by the server's clock; undefined where something in between took that away. */
  at: string | undefined;
}

export type RepairResult = { at: "once"; repaired: Repaired } | { at: "length"; operation: Operation };

export async function dryRun(wanted: RepairRequest, signal: AbortSignal): Promise<DryRun> {
  const { found, at } = await sendTo(wanted, { dry_run: true }, signal);
  return dryRunOf(found as Schemas["DryRunResponse"], at);
}

function dryRunOf(found: Schemas["DryRunResponse"], at: string | undefined): DryRun {
  return {
    count: found.count,
    byQueue: found.by_queue,
    byException: found.by_exception,
    sample: found.sample.map(({ id, queue, error, failed_at, preview }) => ({
      id,
      queue,
      error,
      failedAt: failed_at,
      preview,
    })),
    warnings: found.warnings,
    token: found.confirm_token,
    expiresAt: found.expires_at,
    at,
  };
}

export async function repair(
  wanted: RepairRequest,
  manner: ExecutionOptions,
  token: string,
  key: string,
): Promise<RepairResult> {
  const { rate, canary, stopRatio, startsAt, reason } = manner;
  const careful =
    wanted.action === "requeue"
      ? {
          ...(rate !== undefined && { rate_per_second: rate }),
          ...(canary && { canary }),
          ...(stopRatio !== undefined && { stop_on_failure_ratio: stopRatio }),
          ...(startsAt && { starts_at: startsAt }),
        }
      : {};
  const { found } = await sendTo(
    wanted,
    { dry_run: false, confirm_token: token, ...(reason && { reason }), ...careful },
    undefined,
    key,
  );
  return "progress" in found
    ? { at: "length", operation: found }
    : { at: "once", repaired: found as Repaired };
}

/** The same dead letters without those that died after a dry run; undefined where that leaves none out. */
export function until(selector: Selector, at: string | undefined): Selector | undefined {
  if ("ids" in selector || at === undefined) return undefined;
  const moment = new Date(at).getTime() + 1_000;
  const filter: Partial<Schemas["DeadLetterFilters"]> =
    "filter" in selector ? selector.filter : { group_id: selector.group_id };
  if (filter.failed_before && new Date(filter.failed_before).getTime() <= moment) return undefined;
  const whole = { ...filter, failed_before: new Date(moment).toISOString() };
  return { filter: whole as Schemas["DeadLetterFilters"] };
}

interface Further {
  dry_run: boolean;
  confirm_token?: string;
  reason?: string;
}

async function sendTo(wanted: RepairRequest, further: Further, signal?: AbortSignal, key?: string) {
  const request = posted(wanted, further, signal, key);
  const found = await dataOf<Found>(request);
  const { response } = await request;
  const at = new Date(response.headers.get("date") ?? "");
  return { found, at: Number.isNaN(at.getTime()) ? undefined : at.toISOString() };
}

function posted(wanted: RepairRequest, further: Further, signal?: AbortSignal, key?: string) {
  const { action, selector, destination, maxItems, force, edit } = wanted;
  const common = { selector, ...(maxItems !== undefined && { max_items: maxItems }), ...further };
  const options = { params: { header: key ? { "Idempotency-Key": key } : {} }, ...(signal && { signal }) };
  switch (action) {
    case "requeue": {
      const body = { ...common, force, ...(destination && { destination }), ...(edit && { edit }) };
      return client.POST("/requeue", { body, ...options });
    }
    case "restore":
      return client.POST("/restore", { body: common, ...options });
    default: {
      const body = { ...common, purge: action === "purge", force: action === "purge" && force };
      return client.POST("/discard", { body, ...options });
    }
  }
}

type Found = Repaired | Schemas["DryRunResponse"] | Operation;
