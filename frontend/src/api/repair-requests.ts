// Requests and responses of repairs.

import { client, type Schemas, unwrap } from "./client";

export type Action = Schemas["Action"];
export type Operation = Schemas["OperationResponse"];
export type Repaired = Schemas["RepairResponse"];

export type Selector = { ids: string[] } | { filter: Schemas["DeadLetterFilters"] } | { group_id: string };

/** The action and the dead letters it applies to. A dry run's confirmation token is valid for exactly this. */
export interface RepairRequest {
  action: Action;
  selector: Selector;
  destination: Schemas["RequeueRequest"]["destination"];
  maxItems: number | undefined;
  force: boolean;
  edit: Schemas["EditRequest"] | undefined;
}

/** Options of the execution. They may change after the dry run. */
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

/** Result of a dry run. */
export interface DryRun {
  count: number;
  byQueue: Record<string, number>;
  byException: Record<string, number>;
  sample: readonly SampleItem[];
  warnings: readonly string[];
  token: string;
  expiresAt: string;
  /** Server time of the response; undefined if a proxy removed the Date header. */
  at: string | undefined;
}

export type RepairResult =
  | { kind: "immediate"; repaired: Repaired }
  | { kind: "operation"; operation: Operation };

export async function dryRun(wanted: RepairRequest, signal: AbortSignal): Promise<DryRun> {
  const { found, at } = await send(wanted, { dry_run: true }, signal);
  return toDryRun(found as Schemas["DryRunResponse"], at);
}

function toDryRun(found: Schemas["DryRunResponse"], at: string | undefined): DryRun {
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
  options: ExecutionOptions,
  token: string,
  key: string,
): Promise<RepairResult> {
  const { rate, canary, stopRatio, startsAt, reason } = options;
  const requeueOptions =
    wanted.action === "requeue"
      ? {
          ...(rate !== undefined && { rate_per_second: rate }),
          ...(canary && { canary }),
          ...(stopRatio !== undefined && { stop_on_failure_ratio: stopRatio }),
          ...(startsAt && { starts_at: startsAt }),
        }
      : {};
  const { found } = await send(
    wanted,
    { dry_run: false, confirm_token: token, ...(reason && { reason }), ...requeueOptions },
    undefined,
    key,
  );
  return "progress" in found
    ? { kind: "operation", operation: found }
    : { kind: "immediate", repaired: found as Repaired };
}

/** Narrows a selector to dead letters that failed before the dry run; undefined if that changes nothing. */
export function withoutNewer(selector: Selector, at: string | undefined): Selector | undefined {
  if ("ids" in selector || at === undefined) return undefined;
  // The Date header has whole seconds, so the limit is the end of that second.
  const limit = new Date(at).getTime() + 1_000;
  const filter: Partial<Schemas["DeadLetterFilters"]> =
    "filter" in selector ? selector.filter : { group_id: selector.group_id };
  if (filter.failed_before && new Date(filter.failed_before).getTime() <= limit) return undefined;
  const narrowed = { ...filter, failed_before: new Date(limit).toISOString() };
  return { filter: narrowed as Schemas["DeadLetterFilters"] };
}

interface ExtraFields {
  dry_run: boolean;
  confirm_token?: string;
  reason?: string;
}

async function send(wanted: RepairRequest, extra: ExtraFields, signal?: AbortSignal, key?: string) {
  const request = post(wanted, extra, signal, key);
  const found = await unwrap<RepairResponse>(request);
  const { response } = await request;
  const at = new Date(response.headers.get("date") ?? "");
  return { found, at: Number.isNaN(at.getTime()) ? undefined : at.toISOString() };
}

function post(wanted: RepairRequest, extra: ExtraFields, signal?: AbortSignal, key?: string) {
  const { action, selector, destination, maxItems, force, edit } = wanted;
  const common = { selector, ...(maxItems !== undefined && { max_items: maxItems }), ...extra };
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

type RepairResponse = Repaired | Schemas["DryRunResponse"] | Operation;
