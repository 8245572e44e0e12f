import { Button, IconButton } from "~/ui";
import styles from "./Waterfall.module.css";
import type { Zoom } from "./zoom";

const WHOLE = "The whole time is in sight.";

export function ZoomButtons({ zoom }: { zoom: Zoom }) {
  const whole = zoom.isWhole ? WHOLE : undefined;
  return (
    <fieldset className={styles.zoom}>
      <legend className="unseen">What part of the time is in sight</legend>
      <IconButton icon="minus" label="Zoom out" whyNot={whole} onClick={zoom.farther} />
      <IconButton icon="plus" label="Zoom in" onClick={zoom.closer} />
      <IconButton icon="left" label="Earlier" whyNot={whole} onClick={zoom.earlier} />
      <IconButton icon="right" label="Later" whyNot={whole} onClick={zoom.later} />
      <Button
        look="quiet"
        whyNot={zoom.toSelected ? undefined : "Select a message first."}
        onClick={zoom.toSelected}
      >
        Zoom to selected
      </Button>
      <Button look="quiet" whyNot={whole} onClick={() => zoom.show(undefined)}>
        Whole time
      </Button>
    </fieldset>
  );
}
