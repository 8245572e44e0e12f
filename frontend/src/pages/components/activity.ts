// Describes the activity of a component.

import type { Component, ComponentStatus } from "~/api/components";
import { number, rate, span } from "~/lib/format";
import * as texts from "~/texts/components";

const SEVERITY: Record<ComponentStatus, number> = { lost: 0, late: 1, alive: 2, stopped: 3 };
const KINDS = ["relay", "worker", "archiver", "maintenance"];

/** Sorts components: those that need attention first, then by kind and name; stopped ones last. */
export function sortedComponents(all: readonly Component[]): readonly Component[] {
  return [...all].sort(
    (a, b) =>
      SEVERITY[a.status] - SEVERITY[b.status] ||
      KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
      a.name.localeCompare(b.name) ||
      b.startedAt.localeCompare(a.startedAt),
  );
}

/** Describes the activity in short phrases: first what holds it up, then rates and counts. */
export function activityOf(component: Component): readonly string[] {
  const { status, activity } = component;
  if (status === "stopped") return [texts.stoppedCleanly];
  const phrases = [
    activity.state,
    ...(activity.destination && activity.destination !== "default"
      ? [texts.toDestination(activity.destination)]
      : []),
    ...activity.failingQueues.map((queue) => texts.failingQueue(queue)),
    ...(activity.pausedQueues.length > 0 ? [texts.pausedQueues(activity.pausedQueues.join(", "))] : []),
    ...rates(activity.perSecond),
    ...(activity.inFlight ? [texts.inFlightCount(activity.inFlight)] : []),
    ...(activity.unsent ? [unsent(activity.unsent, activity.oldestDueAgeSeconds)] : []),
  ];
  return status === "lost" ? [texts.lastReported(phrases.join(", "))] : phrases;
}

const COUNT_LABELS: Record<string, string> = {
  sent: "sent",
  success: "handled",
  failed: "failed",
  rejected: "rejected",
};

function rates(perSecond: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(perSecond)
    .filter(([, value]) => value > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([name, value]) => `${rate(value)} ${countLabel(name)}`);
}

/** Returns the label of a counter. */
export function countLabel(counted: string): string {
  return COUNT_LABELS[counted] ?? counted.replaceAll("_", " ");
}

function unsent(selectedCount: number, oldest: number | undefined): string {
  const since = oldest !== undefined && oldest >= 1 ? texts.oldestDue(span(oldest)) : "";
  return texts.unsent(selectedCount, since);
}

/** Counts the components by status: `2 alive, 1 lost`. */
export function summary(all: readonly Component[]): string {
  const statuses: readonly ComponentStatus[] = ["lost", "late", "alive", "stopped"];
  return statuses
    .map((status) => [status, all.filter((one) => one.status === status).length] as const)
    .filter(([, selectedCount]) => selectedCount > 0)
    .map(([status, selectedCount]) => `${number(selectedCount)} ${status}`)
    .join(", ");
}

/** Returns the number of queues of a worker; undefined for other components. */
export function queuesOf(component: Component): string | undefined {
  return component.kind === "worker" ? texts.queues(component.consumers.length) : undefined;
}
