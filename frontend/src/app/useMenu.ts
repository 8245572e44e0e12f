import { type RefObject, useEffect, useRef, useState } from "react";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/app";

export interface Menu {
  open: boolean;
  toggle(): void;
  close(): void;
  /** The list of pages, and the button that opens it. */
  pages: RefObject<HTMLElement | null>;
  button: RefObject<HTMLButtonElement | null>;
}

/** The menu on narrow screens: takes focus when it opens, and closes on Escape or navigation, returning focus on Escape. */
export function useMenu(location: string): Menu {
  const [open, setOpen] = useState(false);
  const pages = useRef<HTMLElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  function close() {
    setOpen(false);
    button.current?.focus();
  }
  useShortcuts(texts.menu, [{ keys: "Escape", label: texts.closeMenu, run: close }], open);
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigation closes the menu
  useEffect(() => setOpen(false), [location]);
  useEffect(() => {
    if (!open) return;
    const currentPage = pages.current?.querySelector<HTMLElement>("nav [aria-current]");
    (currentPage ?? pages.current?.querySelector<HTMLElement>("nav a"))?.focus();
    const wide = window.matchMedia("(min-width: 861px)");
    const closeOnWide = () => setOpen(false);
    wide.addEventListener("change", closeOnWide);
    return () => wide.removeEventListener("change", closeOnWide);
  }, [open]);
  return { open, toggle: () => (open ? close() : setOpen(true)), close, pages, button };
}
