// Texts about requests: why a request failed, and why an action is not allowed.

export const unreachable = "The service does not respond.";
export const unreachableDetail =
  "It may be restarting, or the network may be down. The page shows the last data received.";
export const oneLine = (message: string, code: string, request: string | undefined) =>
  `${message} Code ${code}${request ? `, request ${request}` : ""}.`;
export const unreadable = (status: number, reason: string) => `Unexpected response: ${status} ${reason}`;
export const notJson = "Unexpected response: not JSON";
export const unreadableDetail =
  "The response did not come from the admin API. A proxy between this page and the service may have sent it.";
export const queueTarget = (name: string) => `the queue ${name}`;
export const oneTarget = (scope: string, name: string) => `the ${scope} ${name}`;
export const allTargets = (scope: string) => `all ${scope}s`;
export const readOnly = "This installation is read-only.";
export const roleRequired = (role: string, needed: string, action: string) =>
  `You have the role ${role}. You need the role ${needed} to ${action}.`;

/** What each permission allows, after "to". */
export const permittedActions = {
  repair: "requeue, discard, restore or edit dead letters",
  pause: "pause and resume",
  purge: "delete dead letters permanently",
  read_audit: "read the audit log",
  reveal: "reveal masked values",
};
