// Keyboard shortcuts: components register them while mounted, one listener dispatches keys, and `?` lists them.

import { useEffect, useRef } from "react";
import { store, useStore } from "./store";

export interface Shortcut {
  /** One key (`j`, `R`, `?`, `Escape`) or two in a row (`g o`). */
  keys: string;
  /** Label for the list of shortcuts: "Next row". */
  label: string;
  run(event: KeyboardEvent): void;
}

export interface ActiveShortcut extends Shortcut {
  group: string;
}

const registered = store<readonly ActiveShortcut[]>([]);

/** All registered shortcuts, those of the latest component first. */
export function useActiveShortcuts(): readonly ActiveShortcut[] {
  return useStore(registered);
}

/** Registers shortcuts while the calling component is mounted. The latest registration of the same keys wins. */
export function useShortcuts(group: string, shortcuts: readonly Shortcut[], enabled = true): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const names = shortcuts.map(({ keys, label }) => `${keys}\n${label}`).join("\n\n");
  useEffect(() => {
    if (!enabled || !names) return;
    const mine: ActiveShortcut[] = names.split("\n\n").map((name, index) => {
      const [keys = "", label = ""] = name.split("\n");
      return { group, keys, label, run: (event) => latest.current[index]?.run(event) };
    });
    registered.set([...mine, ...registered.get()]);
    return () => registered.set(registered.get().filter((shortcut) => !mine.includes(shortcut)));
  }, [group, names, enabled]);
}

/** Milliseconds between the two keys of a shortcut. */
const SEQUENCE_TIMEOUT = 1500;
/** The only shortcut that also works while the user types. */
export const COMMAND_K = "⌘K";

/** Dispatches keys to shortcuts until the returned function is called. */
export function listenForShortcuts(target: Document = document): () => void {
  let first: { key: string; at: number } | undefined;
  function onKeyDown(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && !inDialog(event.target)) {
      event.preventDefault();
      registered
        .get()
        .find(({ keys }) => keys === COMMAND_K)
        ?.run(event);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    // A disabled button prevents the default of every key, and handles none.
    if (event.defaultPrevented && !isDisabled(event.target)) return;
    if (isTyping(event.target) || inDialog(event.target)) return;
    if (event.key === "Enter" && handlesEnter(event.target)) return;
    const pair = first && Date.now() - first.at < SEQUENCE_TIMEOUT ? `${first.key} ${event.key}` : undefined;
    first = undefined;
    const found =
      registered.get().find(({ keys }) => keys === pair) ??
      registered.get().find(({ keys }) => keys === event.key);
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (registered.get().some(({ keys }) => keys.startsWith(`${event.key} `))) {
      first = { key: event.key, at: Date.now() };
    }
  }
  target.addEventListener("keydown", onKeyDown);
  return () => target.removeEventListener("keydown", onKeyDown);
}

function isDisabled(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("button[aria-disabled=true]");
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select")
  );
}

/** Whether the element handles Enter itself. */
function handlesEnter(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest("a, button, summary, [role=button], [role=tab], [role=treeitem]") !== null
  );
}

/** Whether a dialog, menu or list box handles the keys. */
function inDialog(target: EventTarget | null): boolean {
  // Shortcuts of the page behind a modal dialog must not run, even if nothing has focus.
  if (document.querySelector("[data-modal][data-open]")) return true;
  return (
    target instanceof HTMLElement &&
    target.closest("[role=dialog], [role=alertdialog], [role=menu], [role=listbox]") !== null
  );
}
