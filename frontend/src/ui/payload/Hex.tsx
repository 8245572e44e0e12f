import { useMemo, useState } from "react";
import * as texts from "~/texts/payload";
import { Button } from "../Button";
import { hexLines } from "./bytes";
import styles from "./payload.module.css";
import { Scroll } from "./Scroll";

const INITIAL_BYTES = 4_096;

/** Hex dump of bytes with their printable characters. */
export function Hex({ bytes, label }: { bytes: Uint8Array; label: string }) {
  const [shown, setShown] = useState(INITIAL_BYTES);
  const lines = useMemo(() => hexLines(bytes, shown), [bytes, shown]);
  return (
    <>
      <Scroll label={label}>{lines}</Scroll>
      {bytes.length > shown && (
        <p className={styles.rest}>
          {texts.bytesShown(shown, bytes.length)}{" "}
          <Button look="quiet" icon="down" onClick={() => setShown(shown * 4)}>
            {texts.showMore}
          </Button>
        </p>
      )}
    </>
  );
}
