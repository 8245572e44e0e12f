import { Menu } from "@base-ui/react/menu";
import { useState } from "react";
import type { DeadLetter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { api } from "~/lib/mount";
import * as texts from "~/texts/dead-letters";
import { Button, copy, Icon, type IconName } from "~/ui";
import { whyNotFor } from "../list/actions";
import { type CommandAction, command, curl } from "./commands";
import { Download } from "./Download";
import styles from "./MoreMenu.module.css";

/** Rarely used actions: shell commands, download of the body, permanent deletion. */
export function MoreMenu({ deadLetter, onPurge }: { deadLetter: DeadLetter; onPurge(): void }) {
  const [downloading, setDownloading] = useState(false);
  const revealDenied = useWhyNot("reveal");
  const purgeDenied = useWhyNot("purge");
  const { id, status } = deadLetter;
  const actions = [...ACTIONS[status], "show"] as const;
  return (
    <>
      <Menu.Root>
        <Menu.Trigger render={<Button icon="more">{texts.more}</Button>} />
        <Menu.Portal>
          <Menu.Positioner className={styles.layer ?? ""} align="end" sideOffset={4} collisionPadding={8}>
            <Menu.Popup className={styles.menu ?? ""}>
              {actions.map((action) => (
                <Menu.Group key={action}>
                  <Item
                    icon="copy"
                    text={texts.copyCurl(WORDS[action])}
                    act={() => copyToClipboard(curl(action, id, api.href))}
                  />
                  <Item
                    icon="copy"
                    text={texts.copyCommand(WORDS[action])}
                    act={() => copyToClipboard(command(action, id, api.href))}
                  />
                </Menu.Group>
              ))}
              <Menu.Separator className={styles.line ?? ""} />
              <Item
                icon="download"
                text={texts.downloadBody}
                whyNot={revealDenied}
                act={() => setDownloading(true)}
              />
              <Item
                icon="dead"
                text={texts.purge}
                whyNot={purgeDenied ?? whyNotFor("purge", status)}
                act={onPurge}
              />
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
      {downloading && <Download deadLetter={deadLetter} onClose={() => setDownloading(false)} />}
    </>
  );
}

const ACTIONS: Record<DeadLetter["status"], readonly CommandAction[]> = {
  open: ["requeue"],
  discarded: ["restore"],
  requeued: [],
};

const WORDS: Record<CommandAction, string> = {
  show: texts.showThis,
  requeue: texts.requeueVerb,
  discard: texts.discardVerb,
  restore: texts.restoreVerb,
};

function copyToClipboard(text: string): void {
  void copy(text, texts.copiedCommand);
}

function Item({
  icon,
  text,
  whyNot,
  act,
}: {
  icon: IconName;
  text: string;
  whyNot?: string | undefined;
  act(): void;
}) {
  return (
    <Menu.Item className={styles.item ?? ""} disabled={whyNot !== undefined} onClick={act}>
      <Icon name={icon} />
      <span>
        {text}
        {whyNot !== undefined && <span className={styles.why}>{whyNot}</span>}
      </span>
    </Menu.Item>
  );
}
