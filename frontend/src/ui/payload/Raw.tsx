import { useState } from "react";
import * as texts from "~/texts/payload";
import { Button } from "../Button";
import styles from "./payload.module.css";
import { Scroll } from "./Scroll";

const PART_LENGTH = 50_000;

/** Raw text. Long text is shown in parts to keep the page responsive. */
export function Raw({ text, wrap, label }: { text: string; wrap: boolean; label: string }) {
  const [shown, setShown] = useState(PART_LENGTH);
  return (
    <>
      <Scroll label={label} wrap={wrap}>
        {text.slice(0, shown)}
      </Scroll>
      {text.length > shown && (
        <p className={styles.rest}>
          {texts.charactersShown(shown, text.length)}{" "}
          <Button look="quiet" icon="down" onClick={() => setShown(shown + PART_LENGTH)}>
            {texts.showMore}
          </Button>
        </p>
      )}
    </>
  );
}
