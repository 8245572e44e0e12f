/** The token in the fragment of the address, `#token=outbox_…`, which is taken out of it and of the history at once. */
export function tokenInAddress(): string | undefined {
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (!token) return undefined;
  window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return token;
}
