import { useCallback } from "react";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/chains";
import { Empty } from "~/ui";
import { useCursor } from "./cursor";
import { Legend } from "./Legend";
import { Ruler } from "./Ruler";
import { idOf } from "./rows";
import { type ChainHandlers, type ChainView, useRows } from "./view";
import { scrollIntoView, useViewport } from "./viewport";
import styles from "./Waterfall.module.css";
import { WaterfallRow } from "./WaterfallRow";
import { ZoomButtons } from "./ZoomButtons";
import { useZoom } from "./zoom";

const RULER_HEIGHT = 28;
/** Rows rendered above and below the visible ones. */
const OVERSCAN = 6;

/** The messages along a time axis, one row each. Only the visible rows are rendered. */
export function Waterfall({ chainView, handlers }: { chainView: ChainView; handlers: ChainHandlers }) {
  const rows = useRows(chainView.tree, handlers.folding, true);
  const [container, viewport] = useViewport();
  const rowHeight = usePreferences().density === "compact" ? 28 : 34;
  const reveal = useCallback(
    (index: number) => {
      if (!container.current) return;
      scrollIntoView(container.current, { top: index * rowHeight, height: rowHeight }, RULER_HEIGHT);
    },
    [container, rowHeight],
  );
  const cursor = useCursor(texts.waterfallLabel, rows, handlers, reveal);
  const zoom = useZoom(chainView, handlers.selected);
  if (!zoom.whole) {
    return <Empty title={texts.noTimes}>{texts.noTimesHint}</Empty>;
  }
  const names = viewport.width < 560 ? 136 : viewport.width < 900 ? 240 : 320;
  const width = Math.max(viewport.width - names, 40);
  const first = Math.max(0, Math.floor(viewport.top / rowHeight) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((viewport.top + viewport.height) / rowHeight) + OVERSCAN);
  return (
    <div className={styles.waterfall}>
      <div className={styles.tools}>
        <Legend />
        <ZoomButtons zoom={zoom} />
      </div>
      <div ref={container} className={styles.container} tabIndex={-1}>
        <Ruler view={zoom.view} origin={zoom.origin} names={names} width={width} height={viewport.height} />
        <div {...cursor.tree} className={styles.rows} style={{ height: rows.length * rowHeight }}>
          {rows.slice(first, last).map((row, offset) => (
            <WaterfallRow
              key={row.key}
              row={row}
              prefix={cursor.prefix}
              index={first + offset}
              isCursor={first + offset === cursor.index}
              isSelected={handlers.selected !== undefined && idOf(row) === handlers.selected}
              height={rowHeight}
              names={names}
              width={width}
              view={zoom.view}
              lanes={row.kind === "fold" ? undefined : chainView.lanes.get(row.item)}
            />
          ))}
        </div>
      </div>
    </div>
  );
}
