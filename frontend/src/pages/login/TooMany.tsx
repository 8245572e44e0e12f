import { useNow } from "~/lib/clock";
import { span } from "~/lib/format";
import { Icon } from "~/ui";
import styles from "./Login.module.css";

/** Too many wrong tokens came from here: how long that lasts. A right one is let in meanwhile, so nothing is locked. */
export function TooMany({ seconds = 0, at }: { seconds?: number | undefined; at: number }) {
  const left = Math.ceil(seconds - (useNow() - at) / 1000);
  return (
    <div role="alert" className={styles.tooMany}>
      <Icon name="clock" />
      <p>
        <strong>Too many wrong tokens were tried.</strong>{" "}
        {left > 0 ? (
          <>
            Wrong ones are turned away for another <span aria-live="off">{span(left)}</span>. A right one is
            let in all the same.
          </>
        ) : (
          "You can try again now."
        )}
      </p>
    </div>
  );
}
