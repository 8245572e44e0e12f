import { useCallback, useMemo } from "react";
import * as texts from "~/texts/chains";
import { boxesOf, CARD, COLUMN, HEIGHT, MARGIN, visibleBoxes } from "./boxes";
import { useCursor } from "./cursor";
import { Edges } from "./Edges";
import { idOf } from "./rows";
import { TreeCard } from "./TreeCard";
import styles from "./TreeView.module.css";
import { type ChainHandlers, type ChainView, useRows } from "./view";
import { scrollIntoView, useViewport } from "./viewport";

/** The chain as a tree from left to right. Only the visible cards are rendered. */
export function TreeView({ chainView, handlers }: { chainView: ChainView; handlers: ChainHandlers }) {
  const rows = useRows(chainView.tree, handlers.folding, false);
  const boxes = useMemo(() => boxesOf(rows), [rows]);
  const [container, viewport] = useViewport();
  const reveal = useCallback(
    (index: number) => {
      const box = boxes.list[index];
      if (!box || !container.current) return;
      const part = {
        top: box.y - MARGIN,
        height: HEIGHT + 2 * MARGIN,
        left: box.x - MARGIN,
        width: CARD + COLUMN / 2,
      };
      scrollIntoView(container.current, part);
    },
    [boxes, container],
  );
  const cursor = useCursor(texts.treeLabel, rows, handlers, reveal);
  return (
    <div ref={container} className={styles.container} tabIndex={-1}>
      <div {...cursor.tree} className={styles.tree} style={{ width: boxes.width, height: boxes.height }}>
        <Edges boxes={boxes} viewport={viewport} />
        {visibleBoxes(boxes, viewport).map((box) => (
          <TreeCard
            key={box.row.key}
            box={box}
            prefix={cursor.prefix}
            isCursor={box.index === cursor.index}
            isSelected={handlers.selected !== undefined && idOf(box.row) === handlers.selected}
            lanes={box.row.kind === "fold" ? undefined : chainView.lanes.get(box.row.item)}
          />
        ))}
      </div>
    </div>
  );
}
