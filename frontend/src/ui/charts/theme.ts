// The theme's colours for canvas drawings, which cannot use CSS variables.

import { useMemo, useSyncExternalStore } from "react";

export interface Palette {
  text: string;
  quiet: string;
  grid: string;
  surface: string;
  sunken: string;
  series: readonly string[];
}

/** Colours of the current theme. */
export function usePalette(): Palette {
  const theme = useSyncExternalStore(subscribe, themeKey);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the variables have other values in another theme
  return useMemo(readPalette, [theme]);
}

function subscribe(changed: () => void): () => void {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", changed);
  };
}

function themeKey(): string {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  return `${document.documentElement.dataset.theme ?? "system"} ${dark}`;
}

function readPalette(): Palette {
  const probe = document.createElement("span");
  document.body.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: colour("--text"),
    quiet: colour("--quiet"),
    grid: colour("--line"),
    surface: colour("--surface"),
    sunken: colour("--sunken"),
    series: [1, 2, 3, 4, 5].map((index) => colour(`--series-${index}`)),
  };
  probe.remove();
  return found;
}
