import { useState } from "react";
import * as texts from "~/texts/payload";
import { Button } from "../Button";
import styles from "./payload.module.css";
import { Scroll } from "./Scroll";

const AT_ONCE = 50_000;

/** Text as it was sent. A long one is shown piece by piece, so that the page stays quick. */
export function Raw({ text, wrap, label }: { text: string; wrap: boolean; label: string }) {
  const [shown, setShown] = useState(AT_ONCE);
  return (
    <>
      <Scroll label={label} wrap={wrap}>
        {text.slice(0, shown)}
      </Scroll>
      {text.length > shown && (
        <p className={styles.rest}>
          {texts.charactersShown(shown, text.length)}{" "}
          <Button look="quiet" icon="down" onClick={() => setShown(shown + AT_ONCE)}>
            {texts.showMore}
          </Button>
        </p>
      )}
    </>
  );
}
