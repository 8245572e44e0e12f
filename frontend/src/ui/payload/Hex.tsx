import { useMemo, useState } from "react";
import { number } from "~/lib/format";
import { Button } from "../Button";
import { hexLines } from "./bytes";
import styles from "./payload.module.css";
import { Scroll } from "./Scroll";

const AT_ONCE = 4_096;

/** Bytes by their codes, with what is readable of them beside. */
export function Hex({ bytes, label }: { bytes: Uint8Array; label: string }) {
  const [shown, setShown] = useState(AT_ONCE);
  const lines = useMemo(() => hexLines(bytes, shown), [bytes, shown]);
  return (
    <>
      <Scroll label={label}>{lines}</Scroll>
      {bytes.length > shown && (
        <p className={styles.rest}>
          {number(shown)} of {number(bytes.length)} bytes.{" "}
          <Button look="quiet" icon="down" onClick={() => setShown(shown * 4)}>
            Show more
          </Button>
        </p>
      )}
    </>
  );
}
