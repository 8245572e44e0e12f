// User preferences, kept in local storage. public/theme.js reads them before the first paint.

import type { Zone } from "./format";
import { store, useStore } from "./store";

export interface Preferences {
  theme: "system" | "light" | "dark";
  zone: Zone;
  density: "comfortable" | "compact";
  live: boolean;
}

const STORAGE_KEY = "outbox.preferences";

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

export function setPreferences(changes: Partial<Preferences>): void {
  const now = { ...preferences.get(), ...changes };
  preferences.set(now);
  applyToRoot(now);
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(now));
  } catch {
    // Without storage, the preferences last until the page is closed.
  }
}

/** Preferences from local storage; defaults replace missing and invalid values. */
export function storedPreferences(): Preferences {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    return { ...DEFAULTS, ...(validValues(found) as Partial<Preferences>) };
  } catch {
    return DEFAULTS;
  }
}

function validValues(found: unknown): object {
  if (typeof found !== "object" || found === null) return {};
  return Object.fromEntries(
    Object.entries(found).filter(([name, value]) =>
      (CHOICES[name as keyof Preferences] as readonly unknown[] | undefined)?.includes(value),
    ),
  );
}

function applyToRoot({ theme, density }: Preferences): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset.theme;
  else dataset.theme = theme;
  if (density === "comfortable") delete dataset.density;
  else dataset.density = density;
}
