// What a person would type into a shell to do the same. The token is a variable there: it stands in no history.

export type CommandAction = "show" | "requeue" | "discard" | "restore";

/** The request, for curl; `api` is the address of the admin with its slash at the end. */
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

/** The same with the command of this system. */
export function command(action: CommandAction, id: string, api: string): string {
  return `OUTBOX_TOKEN="$OUTBOX_TOKEN" outbox dlq ${action} ${quoted(id)} --url ${quoted(api.replace(/\/$/, ""))}`;
}

/** One word of a shell, whatever is in it. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
