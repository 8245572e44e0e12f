import { useCallback, useMemo } from "react";
import * as texts from "~/texts/chains";
import { boxesOf, CARD, COLUMN, HEIGHT, inSight, MARGIN } from "./boxes";
import { useCursor } from "./cursor";
import { Edges } from "./Edges";
import { idOf } from "./rows";
import { TreeCard } from "./TreeCard";
import styles from "./TreeView.module.css";
import { type ChainHandlers, type ChainView, useRows } from "./view";
import { bringIntoSight, useViewport } from "./viewport";

/** Which message led to which, from left to right; only what is in sight is in the document. */
export function TreeView({ drawn, handled }: { drawn: ChainView; handled: ChainHandlers }) {
  const rows = useRows(drawn.tree, handled.folding, false);
  const boxes = useMemo(() => boxesOf(rows), [rows]);
  const [place, seen] = useViewport();
  const reveal = useCallback(
    (index: number) => {
      const box = boxes.list[index];
      if (!box || !place.current) return;
      const part = {
        top: box.y - MARGIN,
        height: HEIGHT + 2 * MARGIN,
        left: box.x - MARGIN,
        width: CARD + COLUMN / 2,
      };
      bringIntoSight(place.current, part);
    },
    [boxes, place],
  );
  const cursor = useCursor(texts.treeLabel, rows, handled, reveal);
  return (
    <div ref={place} className={styles.place} tabIndex={-1}>
      <div {...cursor.tree} className={styles.tree} style={{ width: boxes.width, height: boxes.height }}>
        <Edges boxes={boxes} seen={seen} />
        {inSight(boxes, seen).map((box) => (
          <TreeCard
            key={box.row.key}
            box={box}
            prefix={cursor.prefix}
            isCursor={box.index === cursor.index}
            isSelected={handled.selected !== undefined && idOf(box.row) === handled.selected}
            lanes={box.row.kind === "fold" ? undefined : drawn.lanes.get(box.row.item)}
          />
        ))}
      </div>
    </div>
  );
}
