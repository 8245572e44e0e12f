import { memo } from "react";
import { span } from "~/lib/format";
import * as texts from "~/texts/chains";
import { stateStyle } from "~/ui";
import { type Box, CARD, HEIGHT } from "./boxes";
import { rowProps } from "./cursor";
import { descriptionOf, foldLabel, nameOf } from "./descriptions";
import { Fold } from "./Fold";
import { boundsOf, type Lanes } from "./lanes";
import type { MessageRow } from "./rows";
import { StateIcon } from "./StateIcon";
import styles from "./TreeView.module.css";

interface Props {
  box: Box;
  prefix: string;
  isCursor: boolean;
  isSelected: boolean;
  lanes: Lanes | undefined;
}

export const TreeCard = memo(function TreeCard(props: Props) {
  const { box, lanes } = props;
  const { row } = box;
  const attributes = rowProps(row, { ...props, index: box.index });
  const shape = { left: box.x, top: box.y, width: CARD, height: HEIGHT };
  if (row.kind === "delivery") return null;
  if (row.kind === "fold") {
    return (
      <div {...attributes} className={styles.more} style={shape}>
        <span>{foldLabel(row)}</span>
      </div>
    );
  }
  return (
    <div
      {...attributes}
      className={styles.card}
      style={shape}
      data-tone={stateStyle(row.item.message.state).tone}
    >
      <CardText row={row} lanes={lanes} />
    </div>
  );
});

function CardText({ row: { item, unfolded }, lanes }: { row: MessageRow; lanes: Lanes | undefined }) {
  const { message } = item;
  const bounds = lanes && boundsOf(lanes);
  const seconds = bounds && (bounds.to - bounds.from) / 1000;
  const { label, tone } = stateStyle(message.state);
  return (
    <>
      <StateIcon of={message.state} />
      <span className={styles.words}>
        <span className={styles.key} title={message.id}>
          {nameOf(item)}
        </span>
        <span className={styles.where} aria-hidden="true">
          {tone !== "good" && <strong data-tone={tone}>{label}</strong>}
          {item.orphan && <em>{texts.parentUnknown}</em>}
          {message.deliveries.length > 0 && (
            <span>{queueNames(item.message.deliveries.map(({ queue }) => queue))}</span>
          )}
          {seconds !== undefined && <span className={styles.took}>{span(seconds)}</span>}
        </span>
        <span className="unseen">: {descriptionOf(item, undefined, seconds)}</span>
      </span>
      {unfolded !== undefined && <Fold unfolded={unfolded} />}
    </>
  );
}

function queueNames([first = "", ...others]: readonly string[]): string {
  return others.length > 0 ? `${first} +${others.length}` : first;
}
