// Runs before the first paint, so that a chosen theme never flashes in the other one. It is what src/lib/preferences.ts keeps.
(() => {
  try {
    const kept = JSON.parse(localStorage.getItem("outbox.preferences") ?? "{}");
    const root = document.documentElement;
    if (kept.theme === "light" || kept.theme === "dark") root.dataset.theme = kept.theme;
    if (kept.density === "compact") root.dataset.density = kept.density;
  } catch {
    // without storage the system's theme holds
  }
})();
