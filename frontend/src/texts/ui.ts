// Texts of the shared UI components.

import { number } from "~/lib/format";

export const asOf = (age: string) => `as of ${age} ago`;
export const livePaused = "Paused";
export const live = "Live";
export const liveIdle = "Idle";
export const reconnecting = "Reconnecting";
export const connecting = "Connecting";
export const busy = ", in progress";
export const copied = "Copied";
export const copiedWhat = (label: string) => `${label}: done`;
export const unsaved = "Discard your changes?";
export const loading = "Loading …";
export const newer = "Newer";
export const noNewer = "These are the newest.";
export const older = "Older";
export const noOlder = "These are the oldest.";
export const previous = "Previous";
export const pageNotFound = "That page of the list no longer exists. This is the first page.";
export const firstPage = "This is the first page.";
export const next = "Next";
export const lastPage = "This is the last page.";
export const listPages = "Pages of the list";
export const onThisPage = (count: number) => `${number(count)} on this page`;
export const code = "Code";
export const request = "Request";
export const copyRequestId = "Copy request ID";
export const retryAfter = (seconds: number) => `Try again after ${seconds} s.`;
export const ago = (age: string) => `${age} ago`;
export const ahead = (age: string) => `in ${age}`;
export const secondsLong = (seconds: number) => `${seconds} s`;
export const inBothZones = (utc: string, local: string) => `${utc} UTC\n${local} local`;
export const showResult = "Show result";
export const dismiss = "Dismiss";
export const outbox = "Outbox";
export const outboxes = "Outboxes";
export const logInThere = "Log in";
