import { useNow } from "~/lib/clock";
import { span } from "~/lib/format";
import * as texts from "~/texts/login";
import { Icon } from "~/ui";
import styles from "./Login.module.css";

/** How long invalid tokens from this address are rejected. A valid token is still accepted, so the form stays enabled. */
export function RateLimited({ seconds = 0, at }: { seconds?: number | undefined; at: number }) {
  const left = Math.ceil(seconds - (useNow() - at) / 1000);
  return (
    <div role="alert" className={styles.tooMany}>
      <Icon name="clock" />
      <p>
        <strong>{texts.tooMany}</strong>{" "}
        {left > 0 ? (
          <>
            {texts.blockedFor} <span aria-live="off">{span(left)}</span>
            {texts.validAccepted}
          </>
        ) : (
          texts.tryNow
        )}
      </p>
    </div>
  );
}
