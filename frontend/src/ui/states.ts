// Labels and styles of all states of messages, dead letters, components and operations.

import { states } from "~/texts/states";
import type { Tone } from "./Badge";
import type { IconName } from "./icons";

interface Style {
  tone: Tone;
  icon?: IconName;
}

export interface StateStyle extends Style {
  label: string;
}

const STYLES: Record<string, Style> = {
  pending: { tone: "info", icon: "clock" },
  scheduled: { tone: "neutral", icon: "clock" },
  held: { tone: "warn", icon: "pause" },
  stalled: { tone: "warn", icon: "pause" },
  blocked: { tone: "warn", icon: "pause" },
  retrying: { tone: "warn", icon: "operations" },
  parked: { tone: "bad" },
  sent: { tone: "good" },
  queued: { tone: "info", icon: "messages" },
  postponed: { tone: "warn", icon: "clock" },
  in_flight: { tone: "info", icon: "play" },
  processed: { tone: "good" },
  retried: { tone: "warn", icon: "operations" },
  duplicate: { tone: "neutral" },
  dead_lettered: { tone: "bad" },
  dead: { tone: "bad" },
  open: { tone: "bad" },
  requeued: { tone: "info", icon: "operations" },
  discarded: { tone: "neutral", icon: "trash" },
  unknown: { tone: "neutral", icon: "info" },
  alive: { tone: "good" },
  late: { tone: "warn" },
  lost: { tone: "bad", icon: "lost" },
  stopped: { tone: "neutral", icon: "stop" },
  running: { tone: "info", icon: "play" },
  paused: { tone: "warn", icon: "pause" },
  cancelled: { tone: "neutral", icon: "cross" },
  finished: { tone: "good" },
  fixed: { tone: "good" },
  muted: { tone: "neutral", icon: "pause" },
  reopened: { tone: "bad", icon: "operations" },
  "stopped itself": { tone: "bad", icon: "stop" },
  failed_again: { tone: "bad" },
  refused: { tone: "bad", icon: "cross" },
  not_found: { tone: "warn", icon: "search" },
  skipped: { tone: "neutral", icon: "right" },
  restored: { tone: "good", icon: "restore" },
  purged: { tone: "neutral", icon: "trash" },
};

export function stateStyle(state: string): StateStyle {
  return { label: states[state] ?? state, ...(STYLES[state] ?? { tone: "neutral" }) };
}
