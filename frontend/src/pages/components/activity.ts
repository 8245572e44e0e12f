// What a component does, as a person would say it.

import type { Component, ComponentStatus } from "~/api/components";
import { number, rate, span } from "~/lib/format";
import * as texts from "~/texts/components";

const GRAVITY: Record<ComponentStatus, number> = { lost: 0, late: 1, alive: 2, stopped: 3 };
const KINDS = ["relay", "worker", "archiver", "maintenance"];

/** What needs attention first, then by kind and name; those that ended last. */
export function sortedComponents(all: readonly Component[]): readonly Component[] {
  return [...all].sort(
    (a, b) =>
      GRAVITY[a.status] - GRAVITY[b.status] ||
      KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
      a.name.localeCompare(b.name) ||
      b.startedAt.localeCompare(a.startedAt),
  );
}

/** What it is about, in a few words each: what stands in its way, then how much it does. */
export function activityOf(component: Component): readonly string[] {
  const { status, activity } = component;
  if (status === "stopped") return [texts.stoppedCleanly];
  const said = [
    activity.state,
    ...activity.failingQueues.map((queue) => texts.failingQueue(queue)),
    ...(activity.pausedQueues.length > 0 ? [texts.pausedQueues(activity.pausedQueues.join(", "))] : []),
    ...speeds(activity.perSecond),
    ...(activity.inFlight ? [texts.inFlightCount(activity.inFlight)] : []),
    ...(activity.unsent ? [unsent(activity.unsent, activity.oldestDueAgeSeconds)] : []),
  ];
  return status === "lost" ? [texts.lastReported(said.join(", "))] : said;
}

const SPEEDS: Record<string, string> = {
  sent: "sent",
  success: "handled",
  failed: "failed",
  rejected: "rejected",
};

function speeds(perSecond: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(perSecond)
    .filter(([, value]) => value > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([name, value]) => `${rate(value)} ${wordOf(name)}`);
}

/** What it counts, as a person calls it. */
export function wordOf(counted: string): string {
  return SPEEDS[counted] ?? counted.replaceAll("_", " ");
}

function unsent(selectedCount: number, oldest: number | undefined): string {
  const since = oldest !== undefined && oldest >= 1 ? texts.oldestDue(span(oldest)) : "";
  return texts.unsent(selectedCount, since);
}

/** `2 alive, 1 lost`. */
export function summary(all: readonly Component[]): string {
  const conditions: readonly ComponentStatus[] = ["lost", "late", "alive", "stopped"];
  return conditions
    .map((status) => [status, all.filter((one) => one.status === status).length] as const)
    .filter(([, selectedCount]) => selectedCount > 0)
    .map(([status, selectedCount]) => `${number(selectedCount)} ${status}`)
    .join(", ");
}

/** How many of its queues, for a worker; nothing for others. */
export function queuesOf(component: Component): string | undefined {
  return component.kind === "worker" ? texts.queues(component.consumers.length) : undefined;
}
