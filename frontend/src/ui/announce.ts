// What happened, said once at the edge of the screen and to screen readers. One at a time, and never the same twice in a row.

import { store } from "~/lib/store";

export interface Announcement {
  text: string;
  tone: "good" | "bad";
  /** The address of what came of it. */
  result: string | undefined;
}

/** What is still to be shown. */
export const announced = store<readonly Announcement[]>([]);
let last = { text: "", at: 0 };

/**
 * Says something. Failures stay until they are closed; the same text again within two seconds is not repeated. `result` is
 * the address of what came of it.
 */
export function announce(text: string, tone: "good" | "bad" = "good", result?: string): void {
  const now = Date.now();
  if (text === last.text && now - last.at < 2_000) return;
  last = { text, at: now };
  announced.set([...announced.get(), { text, tone, result }]);
}
