import { useSyncExternalStore } from "react";

const query = window.matchMedia("(min-width: 900px)");

function subscribe(listener: () => void): () => void {
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}

/** Whether the screen is wide enough for the diagram. */
export function useWideScreen(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}
