// After an update of the service the chunks of an open page are gone: the page is reloaded, once.

const KEPT = "outbox.reloaded";
/** Milliseconds within which a second failure is no longer the update's. */
const ONCE_WITHIN = 30_000;

/** Reloads the page when a chunk of it is missing. The address keeps what was shown. */
export function reloadAfterUpdates(reload = () => window.location.reload()): () => void {
  function missing(event: Event): void {
    const last = Number(sessionStorage.getItem(KEPT));
    if (Date.now() - last < ONCE_WITHIN) return;
    sessionStorage.setItem(KEPT, String(Date.now()));
    event.preventDefault();
    reload();
  }
  window.addEventListener("vite:preloadError", missing);
  return () => window.removeEventListener("vite:preloadError", missing);
}
