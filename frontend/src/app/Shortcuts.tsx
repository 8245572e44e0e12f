import { type ActiveShortcut, useActiveShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/app";
import { Dialog } from "~/ui";
import styles from "./Shortcuts.module.css";

/** Lists the keyboard shortcuts of this page. */
export default function Shortcuts({ onClose }: { onClose(): void }) {
  const groups = groupShortcuts(useActiveShortcuts());
  return (
    <Dialog open onClose={onClose} title={texts.shortcutsTitle} description={texts.shortcutsHint}>
      {[...groups].map(([group, shortcuts]) => (
        <section key={group} className={styles.group}>
          <h3>{group}</h3>
          <dl className={styles.list}>
            {shortcuts.map(({ keys, label }) => (
              <div key={keys} className={styles.line}>
                <dt>
                  {keysToPress(keys).map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{label}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}

/** Keys to press: a capital letter is its key with Shift. */
function keysToPress(keys: string): readonly string[] {
  return keys.split(" ").flatMap((key) => (/^[A-Z]$/.test(key) ? [texts.shift, key] : [key]));
}

function groupShortcuts(shortcuts: readonly ActiveShortcut[]): Map<string, ActiveShortcut[]> {
  const groups = new Map<string, ActiveShortcut[]>();
  const seen = new Set<string>();
  for (const shortcut of shortcuts) {
    // Shortcuts come latest first, and the latest registration of the same keys wins.
    if (seen.has(shortcut.keys)) continue;
    seen.add(shortcut.keys);
    groups.set(shortcut.group, [...(groups.get(shortcut.group) ?? []), shortcut]);
  }
  return groups;
}
