// What each state of a message, dead letter, component and operation is called, and how grave it is. One place for all pages.

import type { Tone } from "./Badge";
import type { IconName } from "./icons";

export interface Look {
  label: string;
  tone: Tone;
  icon?: IconName;
  /** What it means, in one sentence. */
  meaning: string;
}

const STATES: Record<string, Look> = {
  pending: { label: "pending", tone: "info", icon: "clock", meaning: "Waits for a relay to publish it." },
  scheduled: { label: "scheduled", tone: "neutral", icon: "clock", meaning: "Its time has not come." },
  held: {
    label: "held",
    tone: "warn",
    icon: "pause",
    meaning: "No queue is bound for it; a relay tries again by itself.",
  },
  stalled: {
    label: "stalled",
    tone: "warn",
    icon: "pause",
    meaning: "A queue on its route confirms nothing or is full; a relay tries again by itself.",
  },
  blocked: {
    label: "blocked",
    tone: "warn",
    icon: "pause",
    meaning: "An earlier message of the same ordering key is not through.",
  },
  retrying: {
    label: "retrying",
    tone: "warn",
    icon: "operations",
    meaning: "An attempt failed; the next one follows.",
  },
  parked: { label: "parked", tone: "bad", meaning: "It cannot be published; somebody has to look at it." },
  sent: { label: "sent", tone: "good", meaning: "The broker has confirmed it." },
  "in a queue": { label: "in a queue", tone: "info", icon: "messages", meaning: "Waits for a worker." },
  "in hand": { label: "in hand", tone: "info", icon: "play", meaning: "A worker is handling it." },
  processed: { label: "processed", tone: "good", meaning: "A handler is done with it." },
  retried: {
    label: "retried",
    tone: "warn",
    icon: "operations",
    meaning: "An attempt failed, and another one was to follow.",
  },
  duplicate: { label: "duplicate", tone: "neutral", meaning: "It came again, and was not handled again." },
  died: { label: "died", tone: "bad", meaning: "Its last attempt failed." },
  dead: { label: "dead", tone: "bad", meaning: "Its last attempt failed; it lies among the dead letters." },
  open: { label: "open", tone: "bad", meaning: "Nobody has decided about it." },
  requeued: { label: "requeued", tone: "info", icon: "operations", meaning: "It was sent again." },
  discarded: {
    label: "discarded",
    tone: "neutral",
    icon: "trash",
    meaning: "Somebody decided against sending it again.",
  },
  unknown: { label: "unknown", tone: "neutral", icon: "info", meaning: "Nothing is known of it any more." },
  alive: { label: "alive", tone: "good", meaning: "It has been heard of as often as it should." },
  late: { label: "late", tone: "warn", meaning: "It should have been heard of by now." },
  lost: {
    label: "lost",
    tone: "bad",
    icon: "lost",
    meaning: "It has not been heard of for long, and said no farewell.",
  },
  stopped: {
    label: "stopped",
    tone: "neutral",
    icon: "stop",
    meaning: "It has ended as it should, or was stopped.",
  },
  running: { label: "running", tone: "info", icon: "play", meaning: "It goes on." },
  paused: { label: "paused", tone: "warn", icon: "pause", meaning: "It waits until somebody resumes it." },
  cancelled: {
    label: "cancelled",
    tone: "neutral",
    icon: "cross",
    meaning: "Somebody ended it before its time.",
  },
  finished: { label: "finished", tone: "good", meaning: "It is through." },
  "stopped itself": {
    label: "stopped itself",
    tone: "bad",
    icon: "stop",
    meaning: "Too many failed; it did not go on with the others.",
  },
  "died-again": { label: "died again", tone: "bad", meaning: "It was requeued, and has come back dead." },
  refused: { label: "refused", tone: "bad", icon: "cross", meaning: "It could not be done." },
  "not-found": { label: "not found", tone: "warn", icon: "search", meaning: "There is no such dead letter." },
  skipped: { label: "skipped", tone: "neutral", icon: "right", meaning: "There was nothing to do." },
  restored: { label: "restored", tone: "good", icon: "restore", meaning: "It is open again." },
  purged: { label: "deleted for good", tone: "neutral", icon: "trash", meaning: "Nothing is left of it." },
};

export function lookOf(state: string): Look {
  return STATES[state] ?? { label: state, tone: "neutral", meaning: "" };
}
