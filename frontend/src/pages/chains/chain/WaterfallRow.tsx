import { memo } from "react";
import * as texts from "~/texts/chains";
import { stateStyle } from "~/ui";
import { Bars } from "./Bars";
import { rowProps } from "./cursor";
import { descriptionOf, foldLabel, nameOf } from "./descriptions";
import { Fold } from "./Fold";
import { type Lanes, reachOf, type Span } from "./lanes";
import { type DeliveryRow, isCritical, type MessageRow, type Row } from "./rows";
import { StateIcon } from "./StateIcon";
import styles from "./Waterfall.module.css";

interface Props {
  row: Row;
  prefix: string;
  index: number;
  isCursor: boolean;
  isSelected: boolean;
  height: number;
  /** How wide the names are, and how wide the time. */
  names: number;
  width: number;
  view: Span;
  lanes: Lanes | undefined;
}

/** Rendered again only when it changed: moving the cursor touches few rows. */
export const WaterfallRow = memo(function WaterfallRow(props: Props) {
  const { row, index, height, names, width, view, lanes } = props;
  const shape = { top: index * height, height, paddingInlineStart: indent(row.level, names) };
  return (
    <div {...rowProps(row, props)} className={styles.row} style={shape}>
      {row.kind === "fold" ? (
        <span className={styles.more}>
          <Fold unfolded={row.hidden === 0} />
          {foldLabel(row)}
        </span>
      ) : (
        <>
          <Name row={row} lanes={lanes} width={names - shape.paddingInlineStart} />
          <div className={styles.time} style={{ left: names, width }}>
            {lanes && <Drawing row={row} lanes={lanes} view={view} width={width} />}
          </div>
        </>
      )}
    </div>
  );
});

const DEEPEST = 12;

/** Indents less where there is little room, and no further below the twelfth level. */
function indent(level: number, names: number): number {
  return 8 + Math.min(level - 1, DEEPEST) * (names < 200 ? 6 : 14);
}

function Name({
  row,
  lanes,
  width,
}: {
  row: MessageRow | DeliveryRow;
  lanes: Lanes | undefined;
  width: number;
}) {
  const { item } = row;
  const delivery = row.kind === "delivery" ? row.delivery : undefined;
  const { deliveries, state } = item.message;
  // Of one delivery its own time, not that of its message, which went to other queues, too.
  const taken =
    lanes &&
    reachOf(
      delivery
        ? lanes.deliveries.slice(deliveries.indexOf(delivery)).slice(0, 1)
        : [lanes.outbox, ...lanes.deliveries],
    );
  const onlyQueue = deliveries.length === 1 ? deliveries[0]?.queue : undefined;
  return (
    <span className={styles.name} style={{ width }}>
      <Fold unfolded={row.kind === "message" ? row.unfolded : undefined} />
      <StateIcon of={delivery?.state ?? state} />
      <span
        className={delivery ? styles.queue : styles.key}
        title={delivery ? delivery.queue : item.message.id}
      >
        {delivery ? delivery.queue : nameOf(item)}
      </span>
      {item.orphan && <em className={styles.orphan}>{texts.parentUnknown}</em>}
      {row.kind === "message" && onlyQueue && <span className={styles.queue}>{onlyQueue}</span>}
      <span className="unseen">
        : {descriptionOf(item, delivery, taken && (taken.to - taken.from) / 1000)}
      </span>
    </span>
  );
}

function Drawing({
  row,
  lanes,
  view,
  width,
}: {
  row: MessageRow | DeliveryRow;
  lanes: Lanes;
  view: Span;
  width: number;
}) {
  const { deliveries, state } = row.item.message;
  const isDelivery = row.kind === "delivery";
  const alone = deliveries.length === 1 ? lanes.deliveries : [];
  const shown = isDelivery
    ? lanes.deliveries.slice(deliveries.indexOf(row.delivery)).slice(0, 1)
    : [lanes.outbox, ...alone];
  return (
    <Bars
      lanes={shown}
      view={view}
      width={width}
      critical={isCritical(row)}
      bad={isDelivery || deliveries.length < 2 ? badWord(isDelivery ? row.delivery.state : state) : undefined}
    />
  );
}

/** The word for what needs attention. */
function badWord(state: string): string | undefined {
  const { tone, label } = stateStyle(state);
  return tone === "bad" ? label : undefined;
}
