// Shell commands for the actions. They take the token from a variable, to keep it out of the shell history.

export type CommandAction = "show" | "requeue" | "discard" | "restore";

/** Returns the request as a curl command. `api` is the URL of the admin API, with a trailing slash. */
export function curl(action: CommandAction, id: string, api: string): string {
  const auth = '-H "Authorization: Bearer $OUTBOX_TOKEN"';
  if (action === "show") return `curl -sS ${quoted(`${api}dlq/${encodeURIComponent(id)}`)} ${auth}`;
  const body = JSON.stringify({ selector: { ids: [id] } });
  return [
    `curl -sS -X POST ${quoted(api + action)}`,
    auth,
    "-H 'Content-Type: application/json'",
    `--data-raw ${quoted(body)}`,
  ].join(" ");
}

/** Returns the request as an `outbox` command. */
export function command(action: CommandAction, id: string, api: string): string {
  return `OUTBOX_TOKEN="$OUTBOX_TOKEN" outbox dlq ${action} ${quoted(id)} --url ${quoted(api.replace(/\/$/, ""))}`;
}

/** Quotes a text as one shell word. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
