import { useCallback } from "react";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/chains";
import { Empty } from "~/ui";
import { useCursor } from "./cursor";
import { Legend } from "./Legend";
import { Ruler } from "./Ruler";
import { idOf } from "./rows";
import { type ChainHandlers, type ChainView, useRows } from "./view";
import { bringIntoSight, useViewport } from "./viewport";
import styles from "./Waterfall.module.css";
import { WaterfallRow } from "./WaterfallRow";
import { ZoomButtons } from "./ZoomButtons";
import { useZoom } from "./zoom";

const RULER = 28;
const BEYOND = 6;

/** Each message on a line of its own along one axis of time; only the lines in sight are in the document. */
export function Waterfall({ drawn, handled }: { drawn: ChainView; handled: ChainHandlers }) {
  const rows = useRows(drawn.tree, handled.folding, true);
  const [place, seen] = useViewport();
  const rowHeight = usePreferences().density === "compact" ? 28 : 34;
  const reveal = useCallback(
    (index: number) => {
      if (place.current) bringIntoSight(place.current, { top: index * rowHeight, height: rowHeight }, RULER);
    },
    [place, rowHeight],
  );
  const cursor = useCursor(texts.waterfallLabel, rows, handled, reveal);
  const zoom = useZoom(drawn, handled.selected);
  if (!zoom.whole) {
    return <Empty title={texts.noTimes}>{texts.noTimesHint}</Empty>;
  }
  const names = seen.width < 560 ? 136 : seen.width < 900 ? 240 : 320;
  const width = Math.max(seen.width - names, 40);
  const first = Math.max(0, Math.floor(seen.top / rowHeight) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((seen.top + seen.height) / rowHeight) + BEYOND);
  return (
    <div className={styles.waterfall}>
      <div className={styles.tools}>
        <Legend />
        <ZoomButtons zoom={zoom} />
      </div>
      <div ref={place} className={styles.place} tabIndex={-1}>
        <Ruler view={zoom.view} origin={zoom.origin} names={names} width={width} height={seen.height} />
        <div {...cursor.tree} className={styles.rows} style={{ height: rows.length * rowHeight }}>
          {rows.slice(first, last).map((row, offset) => (
            <WaterfallRow
              key={row.key}
              row={row}
              prefix={cursor.prefix}
              index={first + offset}
              isCursor={first + offset === cursor.index}
              isSelected={handled.selected !== undefined && idOf(row) === handled.selected}
              height={rowHeight}
              names={names}
              width={width}
              view={zoom.view}
              lanes={row.kind === "fold" ? undefined : drawn.lanes.get(row.item)}
            />
          ))}
        </div>
      </div>
    </div>
  );
}
