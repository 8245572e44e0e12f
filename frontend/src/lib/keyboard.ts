// Shortcuts: components offer them while they are on screen, one listener hears them, and `?` lists them.

import { useEffect, useRef } from "react";
import { store, useStore } from "./store";

export interface Shortcut {
  /** One key (`j`, `R`, `?`, `Escape`) or two in a row (`g o`). */
  keys: string;
  /** What it does, as a person reads it: "Next row". */
  label: string;
  run(event: KeyboardEvent): void;
}

export interface ActiveShortcut extends Shortcut {
  group: string;
}

const offered = store<readonly ActiveShortcut[]>([]);

/** What is offered now, those of components that came last first. */
export function useActiveShortcuts(): readonly ActiveShortcut[] {
  return useStore(offered);
}

/** Offers shortcuts while the calling component is on screen; the latest offer of the same keys wins. */
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
    offered.set([...mine, ...offered.get()]);
    return () => offered.set(offered.get().filter((one) => !mine.includes(one)));
  }, [group, names, enabled]);
}

const SECOND_KEY_WITHIN = 1500;
/** The one shortcut that also works while something is typed. */
export const COMMAND_K = "⌘K";

/** Hears keys until the returned function is called. */
export function listen(target: Document = document): () => void {
  let first: { key: string; at: number } | undefined;
  function heard(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && !inDialog(event.target)) {
      event.preventDefault();
      offered
        .get()
        .find(({ keys }) => keys === COMMAND_K)
        ?.run(event);
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target) || inDialog(event.target)) return;
    if (event.key === "Enter" && isPressed(event.target)) return;
    const pair = first && Date.now() - first.at < SECOND_KEY_WITHIN ? `${first.key} ${event.key}` : undefined;
    first = undefined;
    const found =
      offered.get().find(({ keys }) => keys === pair) ?? offered.get().find(({ keys }) => keys === event.key);
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (offered.get().some(({ keys }) => keys.startsWith(`${event.key} `))) {
      first = { key: event.key, at: Date.now() };
    }
  }
  target.addEventListener("keydown", heard);
  return () => target.removeEventListener("keydown", heard);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select")
  );
}

/** Enter on it does something by itself. */
function isPressed(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest("a, button, summary, [role=button], [role=tab], [role=treeitem]") !== null
  );
}

/** Also where focus is nowhere while a modal dialog is open: what is behind it hears nothing. */
function inDialog(target: EventTarget | null): boolean {
  if (document.querySelector("[data-modal][data-open]")) return true;
  return (
    target instanceof HTMLElement &&
    target.closest("[role=dialog], [role=alertdialog], [role=menu], [role=listbox]") !== null
  );
}
