// Unsaved input, which Back and Forward of the browser, or a login link, would discard.

let guarded: { address: string; ask: () => boolean } | undefined;

/** Asks before the browser goes back or forward, and in `mayLeave`, until the returned function is called. False stays on the page. */
export function guardHistory(ask: () => boolean): () => void {
  guarded = { address: window.location.href, ask };
  return () => {
    guarded = undefined;
  };
}

/** Asks if there is unsaved input. False stays on the page. */
export function mayLeave(): boolean {
  return !guarded || guarded.ask();
}

/** Call it before the first page: Chromium calls listeners of the window in the order in which they were added. */
export function listenForBack(): void {
  window.addEventListener("popstate", (event) => {
    // A login link changes only the fragment. Its listener asks.
    if (!guarded || window.location.hash || guarded.ask()) return;
    event.stopImmediatePropagation();
    window.history.pushState(null, "", guarded.address);
  });
}
