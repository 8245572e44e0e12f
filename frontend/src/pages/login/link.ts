/** Where the login provider is, and comes back from to the page that the user asked for. */
export function providerAddress(): string {
  const { origin, pathname, search } = window.location;
  const asked = new URLSearchParams(search);
  asked.delete(FAILED);
  const page = `${origin}${pathname}`.slice(document.baseURI.length) + (asked.size > 0 ? `?${asked}` : "");
  return new URL(`../session/oidc?${new URLSearchParams({ page })}`, document.baseURI).href;
}

/** Why the login at the provider failed, if the user comes from there. */
export function loginFailure(): string | undefined {
  return new URLSearchParams(window.location.search).get(FAILED) ?? undefined;
}

const FAILED = "login";

/** The token in the fragment of the address, `#token=outbox_…`, which is taken out of it and of the history at once. */
export function tokenInAddress(): string | undefined {
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (!token) return undefined;
  window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return token;
}

/** Hears of links that are opened where the page is open already: only the fragment changes, and nothing is loaded. */
export function listenToLinks(opened: (token: string) => void): () => void {
  const changed = () => {
    const token = tokenInAddress();
    if (token) opened(token);
  };
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

/** Where the application around the admin logs people in, as the server wrote it into the page; empty: it did not say. */
export function loginOfHost(): string | undefined {
  return document.querySelector<HTMLMetaElement>('meta[name="outbox-host-login"]')?.content;
}
