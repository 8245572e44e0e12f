// An update of the service removes the chunks of open pages, so they reload once.

const STORAGE_KEY = "outbox.reloaded";
/** Milliseconds within which a second failure does not reload again, because an update is not its cause. */
const MIN_RELOAD_INTERVAL = 30_000;

/** Reloads the page when one of its chunks is missing. Its state survives, because it is in the URL. */
export function reloadAfterUpdates(reload = () => window.location.reload()): () => void {
  function onMissingChunk(event: Event): void {
    const last = Number(sessionStorage.getItem(STORAGE_KEY));
    if (Date.now() - last < MIN_RELOAD_INTERVAL) return;
    sessionStorage.setItem(STORAGE_KEY, String(Date.now()));
    event.preventDefault();
    reload();
  }
  window.addEventListener("vite:preloadError", onMissingChunk);
  return () => window.removeEventListener("vite:preloadError", onMissingChunk);
}
