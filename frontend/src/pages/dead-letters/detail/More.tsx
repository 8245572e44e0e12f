import { Menu } from "@base-ui/react/menu";
import { useState } from "react";
import type { Letter } from "~/api/dead-letter";
import { useWhyNot } from "~/api/session";
import { api } from "~/lib/mount";
import { Button, copy, Icon, type IconName } from "~/ui";
import { whyNotFor } from "../list/actions";
import { command, curl, type Deed } from "./commands";
import { Download } from "./Download";
import styles from "./More.module.css";

/** What is seldom needed: the same in a shell, the body as a file, and the end of it. */
export function More({ letter, onPurge }: { letter: Letter; onPurge(): void }) {
  const [downloading, setDownloading] = useState(false);
  const mayReveal = useWhyNot("reveal");
  const mayPurge = useWhyNot("purge");
  const { id, status } = letter;
  const deeds = [...DEEDS[status], "show"] as const;
  return (
    <>
      <Menu.Root>
        <Menu.Trigger render={<Button icon="more">More</Button>} />
        <Menu.Portal>
          <Menu.Positioner className={styles.layer ?? ""} align="end" sideOffset={4} collisionPadding={8}>
            <Menu.Popup className={styles.menu ?? ""}>
              {deeds.map((deed) => (
                <Menu.Group key={deed}>
                  <Item
                    icon="copy"
                    text={`Copy as curl: ${WORDS[deed]}`}
                    act={() => take(curl(deed, id, api.href))}
                  />
                  <Item
                    icon="copy"
                    text={`Copy as command: ${WORDS[deed]}`}
                    act={() => take(command(deed, id, api.href))}
                  />
                </Menu.Group>
              ))}
              <Menu.Separator className={styles.line ?? ""} />
              <Item
                icon="download"
                text="Download the body"
                whyNot={mayReveal}
                act={() => setDownloading(true)}
              />
              <Item
                icon="dead"
                text="Delete for good"
                whyNot={mayPurge ?? whyNotFor("purge", status, "one")}
                act={onPurge}
              />
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
      {downloading && <Download letter={letter} onClose={() => setDownloading(false)} />}
    </>
  );
}

const DEEDS: Record<Letter["status"], readonly Deed[]> = {
  open: ["requeue"],
  discarded: ["restore"],
  requeued: [],
};

const WORDS: Record<Deed, string> = {
  show: "look at it",
  requeue: "requeue it",
  discard: "discard it",
  restore: "restore it",
};

function take(text: string): void {
  void copy(text, "Copied. It takes the token from $OUTBOX_TOKEN.");
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
