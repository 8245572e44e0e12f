import { memo } from "react";
import * as texts from "~/texts/chains";
import { stateStyle } from "~/ui";
import { Bars } from "./Bars";
import { rowProps } from "./cursor";
import { descriptionOf, foldLabel, nameOf } from "./descriptions";
import { Fold } from "./Fold";
import { boundsOfLanes, type Lanes, type Span } from "./lanes";
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
  /** Width of the name column, then of the time column, in pixels. */
  names: number;
  width: number;
  view: Span;
  lanes: Lanes | undefined;
}

/** Memoized, so that moving the cursor renders few rows. */
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
            {lanes && <RowBars row={row} lanes={lanes} view={view} width={width} />}
          </div>
        </>
      )}
    </div>
  );
});

const MAX_INDENT_LEVELS = 12;

/** Indents less in a narrow name column, and no further after the twelfth level. */
function indent(level: number, names: number): number {
  return 8 + Math.min(level - 1, MAX_INDENT_LEVELS) * (names < 200 ? 6 : 14);
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
  // A delivery shows its own time. That of the message includes its other queues.
  const bounds =
    lanes &&
    boundsOfLanes(
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
        : {descriptionOf(item, delivery, bounds && (bounds.to - bounds.from) / 1000)}
      </span>
    </span>
  );
}

function RowBars({
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
  const onlyDelivery = deliveries.length === 1 ? lanes.deliveries : [];
  const shown = isDelivery
    ? lanes.deliveries.slice(deliveries.indexOf(row.delivery)).slice(0, 1)
    : [lanes.outbox, ...onlyDelivery];
  return (
    <Bars
      lanes={shown}
      view={view}
      width={width}
      critical={isCritical(row)}
      bad={
        isDelivery || deliveries.length < 2 ? badLabel(isDelivery ? row.delivery.state : state) : undefined
      }
    />
  );
}

/** Returns the label of a state that needs attention. */
function badLabel(state: string): string | undefined {
  const { tone, label } = stateStyle(state);
  return tone === "bad" ? label : undefined;
}
