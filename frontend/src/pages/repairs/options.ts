// The fields of the repair dialog, and the request that they result in.

import type { Action, ExecutionOptions, RepairRequest, Selector } from "~/api/repairs";
import { parseTimeInput } from "~/lib/clock";
import type { Zone } from "~/lib/format";
import * as texts from "~/texts/repairs";
import type { RepairDialogProps } from "./types";

/** Values of the fields; text fields hold their text. */
export interface Options {
  where: "back" | "routing" | "queue";
  queue: string;
  rate: string;
  /** Undefined if not chosen: the number of dead letters decides. */
  canary: boolean | undefined;
  canaryCount: string;
  canaryWait: string;
  stopPercent: string;
  /** Value of the time field; empty means now. */
  startsAt: string;
  maxItems: string;
  force: boolean;
  reason: string;
}

export const DEFAULT_OPTIONS: Options = {
  where: "back",
  queue: "",
  rate: "",
  canary: undefined,
  canaryCount: "10",
  canaryWait: "600",
  stopPercent: "",
  startsAt: "",
  maxItems: "",
  force: false,
  reason: "",
};

export type Field =
  | "queue"
  | "rate"
  | "canaryCount"
  | "canaryWait"
  | "stopPercent"
  | "startsAt"
  | "maxItems"
  | "reason";
export type Errors = Partial<Record<Field, string>>;

/** Above this number, a canary is the default. */
const CANARY_ABOVE = 100;
const MAX_WHOLE = 10_000_000;

/** Whether the selection may contain dead letters that the user has not seen. */
export function isOpenEnded(selector: Selector): boolean {
  return !("ids" in selector);
}

/** Whether to use a canary: as chosen, or by default for many dead letters. */
export function usesCanary(options: Options, selector: Selector, count: number): boolean {
  return options.canary ?? (isOpenEnded(selector) && count > CANARY_ABOVE);
}

/** Returns the request for the dry run; undefined while the input is invalid. */
export function requestOf(
  { action, selector, edit }: Pick<RepairDialogProps, "action" | "selector" | "edit">,
  options: Options,
): RepairRequest | undefined {
  const errors = errorsIn(options, action, false, "utc");
  if (errors.queue || errors.maxItems) return undefined;
  const requeue = action === "requeue";
  return {
    action,
    selector,
    destination: requeue ? destinationOf(options) : undefined,
    maxItems: numberIn(options.maxItems),
    force: options.force && (requeue || action === "purge"),
    edit: requeue ? edit : undefined,
  };
}

export function executionOptionsOf(options: Options, withCanary: boolean, zone: Zone): ExecutionOptions {
  const stop = numberIn(options.stopPercent);
  return {
    rate: numberIn(options.rate),
    canary: withCanary
      ? { count: numberIn(options.canaryCount) ?? 1, wait_seconds: numberIn(options.canaryWait) ?? 1 }
      : undefined,
    stopRatio: stop === undefined ? undefined : stop / 100,
    startsAt: parseTimeInput(options.startsAt, zone),
    reason: options.reason.trim() || undefined,
  };
}

/** Returns the errors in the input, by field. */
export function errorsIn(options: Options, action: Action, withCanary: boolean, zone: Zone): Errors {
  const requeue = action === "requeue";
  const startsAt = parseTimeInput(options.startsAt, zone);
  return withoutEmpty({
    queue: requeue && options.where === "queue" && !options.queue.trim() && texts.queueRequired,
    maxItems: options.maxItems && !isWhole(options.maxItems) && texts.wholeOrEmpty,
    rate: requeue && options.rate && !isWithin(options.rate, 0, 1_000_000, "above") && texts.positiveOrEmpty,
    canaryCount: withCanary && !isWhole(options.canaryCount) && texts.whole,
    canaryWait: withCanary && !isWithin(options.canaryWait, 0, 86_400, "above") && texts.secondsInDay,
    stopPercent:
      requeue &&
      options.stopPercent &&
      !isWithin(options.stopPercent, 0, 100, "from") &&
      texts.percentOrEmpty,
    // The field has whole minutes.
    startsAt:
      startsAt !== undefined && new Date(startsAt).getTime() < Date.now() - 60_000 && texts.startPassed,
    reason:
      (action === "purge" && !options.reason.trim() && texts.reasonRequired) ||
      (options.reason.length > 2_000 && texts.reasonTooLong),
  });
}

/** Whether the typed text is the given number. Separators are ignored. */
export function isTyped(typed: string, count: number): boolean {
  return typed.trim() !== "" && numberIn(typed) === count;
}

/** Parses a number, also with separators, such as `1,204`. */
export function numberIn(text: string): number | undefined {
  const plain = text.replace(/[\s,_]/g, "");
  const value = Number(plain);
  return plain && Number.isFinite(value) ? value : undefined;
}

function destinationOf({ where, queue }: Options): RepairRequest["destination"] {
  if (where === "routing") return "original_routing";
  return where === "queue" ? { queue: queue.trim() } : undefined;
}

function isWhole(text: string): boolean {
  const value = numberIn(text);
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= MAX_WHOLE;
}

function isWithin(text: string, least: number, most: number, bound: "above" | "from"): boolean {
  const value = numberIn(text);
  return value !== undefined && value <= most && (bound === "above" ? value > least : value >= least);
}

function withoutEmpty(found: Record<Field, string | false>): Errors {
  return Object.fromEntries(Object.entries(found).filter(([, error]) => error));
}
