import { type Box, type Boxes, CARD, COLUMN, HEIGHT, type Trunk, visibleTrunks } from "./boxes";
import styles from "./TreeView.module.css";
import type { Viewport } from "./viewport";

const ROUND = 8;

/** Lines from parents to children. Only the visible ones are drawn; those on the critical path are bold. */
export function Edges({ boxes, viewport }: { boxes: Boxes; viewport: Viewport }) {
  const left = Math.max(0, viewport.left - 200);
  const top = Math.max(0, viewport.top - 200);
  const size = { width: viewport.width + 400, height: viewport.height + 400 };
  const lines = visibleTrunks(boxes, viewport).flatMap((trunk) => linesOf(trunk, viewport));
  return (
    <svg
      className={styles.edges}
      style={{ left, top }}
      {...size}
      viewBox={`${left} ${top} ${size.width} ${size.height}`}
      aria-hidden="true"
    >
      {lines.map(({ key, path, critical }) => (
        <path key={key} d={path} data-critical={critical || undefined} />
      ))}
    </svg>
  );
}

interface EdgeLine {
  key: string;
  path: string;
  critical: boolean;
}

/** A vertical line down to the last child, and a line to each visible child. The critical path comes last, to be drawn on top. */
function linesOf({ parent, children }: Trunk, viewport: Viewport): EdgeLine[] {
  const last = children.at(-1);
  if (!last) return [];
  const lines: EdgeLine[] = [];
  const x = parent.x + CARD + (COLUMN - CARD) / 2;
  const y = middle(parent);
  if (children.length > 2) {
    const down = `M${parent.x + CARD} ${y}H${x}V${middle(last) - ROUND}`;
    lines.push({ key: `${parent.row.key} down`, path: down, critical: false });
  }
  for (const child of children) {
    const critical = child.row.kind === "message" && child.row.item.critical;
    const isHidden = child.y + HEIGHT < viewport.top - 200 || child.y > viewport.top + viewport.height + 200;
    if (isHidden && !critical && children.length > 2) continue;
    lines.push({ key: child.row.key, path: elbow(parent, child, x), critical });
  }
  return lines.sort((one, other) => Number(one.critical) - Number(other.critical));
}

function elbow(parent: Box, child: Box, x: number): string {
  const [from, to] = [middle(parent), middle(child)];
  if (from === to) return `M${parent.x + CARD} ${from}H${child.x}`;
  return `M${parent.x + CARD} ${from}H${x - ROUND}Q${x} ${from} ${x} ${from + ROUND}V${to - ROUND}Q${x} ${to} ${x + ROUND} ${to}H${child.x}`;
}

function middle({ y }: Box): number {
  return y + HEIGHT / 2;
}
