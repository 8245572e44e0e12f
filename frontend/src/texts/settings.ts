// Texts of the settings page.

export const system = "System";
export const light = "Light";
export const dark = "Dark";
export const localTime = "Local time";
export const comfortable = "Comfortable";
export const compact = "Compact";
export const title = "Settings";
export const display = "Display";
export const keptHere = "Stored in this browser";
export const theme = "Theme";
export const density = "Density";
export const times = "Times";
export const currentTime = (now: string, zone: string) => `Current time: ${now}, ${zone}.`;
export const liveUpdates = "Live updates";
export const updateAutomatically = "Update automatically";
export const liveHint =
  "Rows keep their position: the page shows how many are new, and adds them when you select it. Updates pause in a hidden tab and while a dialog is open.";
export const mayRepair = "Requeue, discard, restore and edit dead letters, manage operations, add notes";
export const mayPause = "Pause and resume relays, workers and queues";
export const mayReveal = "Reveal masked values, download bodies";
export const mayReadAudit = "Read the audit log";
export const mayPurge = "Delete dead letters permanently";
export const session = "a token, in this browser's session";
export const token = "a token with each request";
export const host = "the host application";
export const you = "You";
export const name = "Name";
export const role = "Role";
export const authenticatedBy = "Authenticated by";
export const sessionEnds = "Session ends";
export const readOnly = "This installation is read-only for all roles.";
export const mayView = (masked: boolean) => `View everything${masked ? ", with secrets masked" : ""}`;
export const allowed = "allowed";
export const denied = "not allowed";

// Access, for administrators
export const tokens = "Tokens";
export const tokensTable = "Configured tokens";
export const noTokens = "No tokens are configured: your application authenticates users.";
export const validUntil = "Valid until";
export const unlimited = "removed";
export const expired = "expired";
export const revoked = "revoked";
export const revoke = "Revoke";
export const revokeOf = (name: string) => `Revoke a token of ${name}?`;
export const revokeHint =
  "It stops working within seconds, in every process, and its sessions end. This cannot be undone: a new token needs a new entry in the configuration.";
export const tokenRevoked = (name: string) => `A token of ${name} was revoked.`;
export const byProvider = "single sign-on";
export const sessions = "Sessions";
export const sessionsTable = "Open sessions";
export const noSessions = "No sessions are open.";
export const loggedIn = "Logged in";
export const action = "Action";
export const endSession = "End session";
export const of = (name: string) => `of ${name}`;
export const by = (name: string) => `by ${name}`;
export const endSessionOf = (name: string) => `End the session of ${name}?`;
export const endSessionHint =
  "The browser is logged out everywhere. The token can still log in; to prevent that, remove it from the configuration.";
export const sessionEnded = (name: string) => `Session of ${name} ended.`;
