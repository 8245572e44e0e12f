// Texts of the alerts page.

import { number } from "~/lib/format";

export const title = "Alerts";
export const status = "Status";
export const all = "All";
export const open = "Open";
export const resolved = "Resolved";
export const none = "No alerts.";
export const noneHint = "An alert appears here when a condition has held for long enough.";
export const notConfigured = "No webhooks are configured.";
export const notConfiguredHint =
  "Set OUTBOX_ALERT_WEBHOOKS to send alerts to webhooks or Slack when something is wrong.";
export const table = "Alerts, newest first";
export const alert = "Alert";
export const severity = "Severity";
export const sent = "Sent";
export const over = "Resolved";
export const webhooks = "Webhooks";
export const isOpen = "open";
export const configuration = "Configuration";
export const codes = "Alerts on";
export const after = "After";
export const above = "Dead letters above";
export const quiet = "Quiet hours";
export const quietHours = (begins: string, ends: string, zone: string) =>
  `${begins}–${ends} ${zone}: only errors are sent`;
export const limit = (above: number) => number(above);
export const test = "Send test message";
export const delivered = (target: string) => `${target} accepted the test message.`;
export const rejected = (target: string, why: string) => `${target}: ${why}`;
export const isSent = "sent";
export const waits = "waiting";
export const retries = (attempts: number) => `retrying, ${number(attempts)} failed`;
export const notSent = "not sent";
export const since = "since";
