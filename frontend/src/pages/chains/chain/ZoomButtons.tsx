import * as texts from "~/texts/chains";
import { Button, IconButton } from "~/ui";
import styles from "./Waterfall.module.css";
import type { Zoom } from "./zoom";

export function ZoomButtons({ zoom }: { zoom: Zoom }) {
  const whole = zoom.isWhole ? texts.wholeTimeShown : undefined;
  return (
    <fieldset className={styles.zoom}>
      <legend className="unseen">{texts.timeRange}</legend>
      <IconButton icon="minus" label={texts.zoomOut} whyNot={whole} onClick={zoom.farther} />
      <IconButton icon="plus" label={texts.zoomIn} onClick={zoom.closer} />
      <IconButton icon="left" label={texts.earlier} whyNot={whole} onClick={zoom.earlier} />
      <IconButton icon="right" label={texts.later} whyNot={whole} onClick={zoom.later} />
      <Button look="quiet" whyNot={zoom.toSelected ? undefined : texts.selectFirst} onClick={zoom.toSelected}>
        {texts.zoomToSelected}
      </Button>
      <Button look="quiet" whyNot={whole} onClick={() => zoom.show(undefined)}>
        {texts.wholeTime}
      </Button>
    </fieldset>
  );
}
