import { type RefObject, useEffect, useRef, useState } from "react";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/app";

export interface Menu {
  open: boolean;
  turn(): void;
  close(): void;
  /** The pages themselves, and the button that shows them. */
  pages: RefObject<HTMLElement | null>;
  button: RefObject<HTMLButtonElement | null>;
}

/** The menu of narrow screens: focus goes into it, Escape closes it and gives focus back; another address closes it too. */
export function useMenu(location: string): Menu {
  const [open, setOpen] = useState(false);
  const pages = useRef<HTMLElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  function close() {
    setOpen(false);
    button.current?.focus();
  }
  useShortcuts(texts.menu, [{ keys: "Escape", label: texts.closeMenu, run: close }], open);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another address closes the menu
  useEffect(() => setOpen(false), [location]);
  useEffect(() => {
    if (!open) return;
    const here = pages.current?.querySelector<HTMLElement>("nav [aria-current]");
    (here ?? pages.current?.querySelector<HTMLElement>("nav a"))?.focus();
    const wide = window.matchMedia("(min-width: 861px)");
    const leave = () => setOpen(false);
    wide.addEventListener("change", leave);
    return () => wide.removeEventListener("change", leave);
  }, [open]);
  return { open, turn: () => (open ? close() : setOpen(true)), close, pages, button };
}
