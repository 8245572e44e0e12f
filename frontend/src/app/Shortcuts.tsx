import { type ActiveShortcut, useActiveShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/app";
import { Dialog } from "~/ui";
import styles from "./Shortcuts.module.css";

/** Lists what the keyboard can do on this page. */
export default function Shortcuts({ onClose }: { onClose(): void }) {
  const groups = grouped(useActiveShortcuts());
  return (
    <Dialog open onClose={onClose} title={texts.shortcutsTitle} description={texts.shortcutsHint}>
      {[...groups].map(([group, shortcuts]) => (
        <section key={group} className={styles.group}>
          <h3>{group}</h3>
          <dl className={styles.list}>
            {shortcuts.map(({ keys, label }) => (
              <div key={keys} className={styles.line}>
                <dt>
                  {pressed(keys).map((key) => (
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

/** The keys as they are pressed: a capital letter is one with Shift. */
function pressed(keys: string): readonly string[] {
  return keys.split(" ").flatMap((key) => (/^[A-Z]$/.test(key) ? [texts.shift, key] : [key]));
}

function grouped(offered: readonly ActiveShortcut[]): Map<string, ActiveShortcut[]> {
  const groups = new Map<string, ActiveShortcut[]>();
  const taken = new Set<string>();
  for (const shortcut of offered) {
    if (taken.has(shortcut.keys)) continue; // the latest offer of the same keys wins
    taken.add(shortcut.keys);
    groups.set(shortcut.group, [...(groups.get(shortcut.group) ?? []), shortcut]);
  }
  return groups;
}
