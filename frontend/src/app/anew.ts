// After an update of the service the parts of a page that is open are no longer there: it is loaded anew, once.

const KEPT = "outbox.loaded-anew";
/** Milliseconds within which a second failure is no longer the update's. */
const ONCE_WITHIN = 30_000;

/** Loads the page anew when a part of it is missing. What is shown is in the address, and comes back. */
export function loadAnewAfterUpdates(reload = () => window.location.reload()): () => void {
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
