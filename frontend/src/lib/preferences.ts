// What a person chose for this browser: kept in its storage, read before the first paint by public/theme.js.

import type { Zone } from "./format";
import { store, useStore } from "./store";

export interface Preferences {
  theme: "system" | "light" | "dark";
  zone: Zone;
  density: "comfortable" | "compact";
  live: boolean;
}

const KEPT = "outbox.preferences";

export const DEFAULTS: Preferences = { theme: "system", zone: "local", density: "comfortable", live: true };

const CHOICES: { [K in keyof Preferences]: readonly Preferences[K][] } = {
  theme: ["system", "light", "dark"],
  zone: ["local", "utc"],
  density: ["comfortable", "compact"],
  live: [true, false],
};

const preferences = store<Preferences>(storedPreferences());

export function usePreferences(): Preferences {
  return useStore(preferences);
}

export function prefer(changes: Partial<Preferences>): void {
  const now = { ...preferences.get(), ...changes };
  preferences.set(now);
  show(now);
  try {
    localStorage.setItem(KEPT, JSON.stringify(now));
  } catch {
    // a browser that keeps nothing forgets the choice with the page
  }
}

/** What storage holds, as far as it makes sense. */
export function storedPreferences(): Preferences {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return { ...DEFAULTS, ...(sensible(found) as Partial<Preferences>) };
  } catch {
    return DEFAULTS;
  }
}

function sensible(found: unknown): object {
  if (typeof found !== "object" || found === null) return {};
  return Object.fromEntries(
    Object.entries(found).filter(([name, value]) =>
      (CHOICES[name as keyof Preferences] as readonly unknown[] | undefined)?.includes(value),
    ),
  );
}

function show({ theme, density }: Preferences): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset.theme;
  else dataset.theme = theme;
  if (density === "comfortable") delete dataset.density;
  else dataset.density = density;
}
