import { useEffect, useMemo, useRef, useState } from "react";
import type { Topology } from "~/api/topology";
import { number } from "~/lib/format";
import * as texts from "~/texts/topology";
import { type Box, layout } from "./layout";
import { neighboursOf } from "./neighbours";
import styles from "./Topology.module.css";

/** The topology as a diagram. The list shows the same for keyboard and screen readers. */
export function Diagram({
  topology,
  unfolded,
  chosen,
  onChoose,
}: {
  topology: Topology;
  unfolded: boolean;
  chosen: string | undefined;
  onChoose(id: string | undefined): void;
}) {
  const { width, height, boxes, paths } = useMemo(() => layout(topology, unfolded), [topology, unfolded]);
  const [hovered, setHovered] = useState<string>();
  const canvas = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to a node that was selected elsewhere, for example by a warning
  useEffect(() => {
    canvas.current?.querySelector("[data-chosen]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const highlighted = hovered ?? chosen;
  const touches = (path: { source: string; target: string }) =>
    path.source === highlighted || path.target === highlighted;
  const isKnown = boxes.some(({ id }) => id === highlighted);
  const wrong = new Map(topology.warnings.map(({ node, severity }) => [node, severity] as const).reverse()); // errors come first
  return (
    <div className={styles.canvas} ref={canvas}>
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={texts.drawingLabel}
        data-lit={isKnown || undefined}
      >
        {[...paths]
          .sort((a, b) => Number(touches(a)) - Number(touches(b)))
          .map((path) => (
            <path
              key={path.id}
              d={path.path}
              className={styles.way}
              data-kind={path.kind}
              data-lit={touches(path) || undefined}
            />
          ))}
        {boxes.map((box) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the list does the same by keyboard
          <g
            key={box.id}
            transform={`translate(${box.x} ${box.y})`}
            className={styles.box}
            data-kind={box.kind}
            data-missing={!box.exists || undefined}
            data-some={(box.queued ?? 0) > 0 || undefined}
            data-wrong={wrong.get(box.id)}
            data-chosen={box.id === chosen || undefined}
            onClick={() => !box.id.startsWith("folded:") && onChoose(box.id === chosen ? undefined : box.id)}
            onPointerEnter={() => setHovered(box.id)}
            onPointerLeave={() => setHovered(undefined)}
          >
            <title>{box.name}</title>
            <rect width={box.width} height={box.height} rx="7" />
            <Words of={box} below={below(box, topology)} />
          </g>
        ))}
      </svg>
    </div>
  );
}

function Words({ of, below }: { of: Box; below: string }) {
  const depth = depthOf(of);
  const tall = of.height > 40;
  const room = Math.floor((of.width - 24) / 7.2) - depth.length;
  const middle = of.height / 2 + 4.5;
  return (
    <>
      <text x="12" y={tall ? 19 : middle} className={styles.title}>
        {cut(of.kind === "dead_letters" ? `† ${of.name}` : of.name, room)}
      </text>
      {tall && (
        <text x="12" y="36" className={styles.small}>
          {cut(below, Math.floor((of.width - 20) / 6.2))}
        </text>
      )}
      <text
        x={of.width - 12}
        y={tall ? 19 : middle}
        textAnchor="end"
        className={styles.depth}
        data-some={(of.queued ?? 0) > 0 || undefined}
      >
        {depth}
      </text>
    </>
  );
}

function depthOf({ kind, exists, queued, retrying }: Box): string {
  if (!exists) return texts.missing;
  if (kind === "exchange" || kind === "worker" || queued === undefined) return "";
  if (kind !== "queue") return queued === 0 ? texts.emptyQueue : number(queued);
  return retrying
    ? texts.depthAndRetries(number(queued), retrying)
    : queued === 0
      ? texts.emptyQueue
      : number(queued);
}

function below(box: Box, topology: Topology): string {
  if (box.kind === "queue") {
    const { bindings } = neighboursOf(box, topology);
    const keys = bindings.map(({ key }) => key).join(", ") || texts.noBindings;
    return box.consumers === 0 ? texts.noConsumer(keys) : keys;
  }
  return box.kind === "exchange" ? texts.exchangeBox : texts.workerBox;
}

function cut(words: string, room: number): string {
  if (words.length <= room) return words;
  const half = Math.max(3, Math.floor((room - 1) / 2));
  return `${words.slice(0, half)}…${words.slice(-half)}`;
}
