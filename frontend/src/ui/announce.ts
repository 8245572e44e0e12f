// Announcements: short messages shown as toasts and read out by screen readers.

import { store } from "~/lib/store";

export interface Announcement {
  text: string;
  tone: "good" | "bad";
  /** Address of the result. */
  result: string | undefined;
}

/** Announcements that have not been shown yet. */
export const pendingAnnouncements = store<readonly Announcement[]>([]);
let last = { text: "", at: 0 };

/**
 * Announces a message. Failures stay until dismissed. The same text within two seconds is announced only once. `result` is the
 * address to link to.
 */
export function announce(text: string, tone: "good" | "bad" = "good", result?: string): void {
  const now = Date.now();
  if (text === last.text && now - last.at < 2_000) return;
  last = { text, at: now };
  pendingAnnouncements.set([...pendingAnnouncements.get(), { text, tone, result }]);
}
