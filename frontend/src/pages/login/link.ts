import { mayLeave } from "~/lib/unsaved";

/** Returns the URL that starts the login at the provider. Afterwards the provider returns to the current page. */
export function providerAddress(): string {
  const { origin, pathname, search } = window.location;
  const parameters = new URLSearchParams(search);
  parameters.delete(FAILED);
  const page =
    `${origin}${pathname}`.slice(document.baseURI.length) + (parameters.size > 0 ? `?${parameters}` : "");
  return new URL(`../session/oidc?${new URLSearchParams({ page })}`, document.baseURI).href;
}

/** Returns the reason if a login at the provider has just failed. */
export function loginFailure(): string | undefined {
  return new URLSearchParams(window.location.search).get(FAILED) ?? undefined;
}

const FAILED = "login";

/** Returns the token in the URL fragment, `#token=outbox_…`, and removes it from the URL and the browser history. */
export function takeTokenFromUrl(): string | undefined {
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (!token) return undefined;
  window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return token;
}

/**
 * Calls `onToken` when a login link is opened in this tab, unless the user keeps unsaved input. Only the fragment changes then, and the
 * page is not loaded again.
 */
export function listenForLoginLinks(onToken: (token: string) => void): () => void {
  const changed = () => {
    const token = takeTokenFromUrl();
    if (token && mayLeave()) onToken(token);
  };
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

/** Returns the login page of the host application from a meta element; empty if none is configured. */
export function hostLoginUrl(): string | undefined {
  return document.querySelector<HTMLMetaElement>('meta[name="outbox-host-login"]')?.content;
}
