import { type Box, type Boxes, CARD, COLUMN, HEIGHT, type Trunk, trunksInSight } from "./boxes";
import styles from "./TreeView.module.css";
import type { Viewport } from "./viewport";

const ROUND = 8;

/** The lines from parents to children: in the part in sight alone, bold on the critical path. */
export function Edges({ boxes, seen }: { boxes: Boxes; seen: Viewport }) {
  const left = Math.max(0, seen.left - 200);
  const top = Math.max(0, seen.top - 200);
  const size = { width: seen.width + 400, height: seen.height + 400 };
  const ties = trunksInSight(boxes, seen).flatMap((trunk) => tiesOf(trunk, seen));
  return (
    <svg
      className={styles.edges}
      style={{ left, top }}
      {...size}
      viewBox={`${left} ${top} ${size.width} ${size.height}`}
      aria-hidden="true"
    >
      {ties.map(({ key, path, critical }) => (
        <path key={key} d={path} data-critical={critical || undefined} />
      ))}
    </svg>
  );
}

interface Tie {
  key: string;
  path: string;
  critical: boolean;
}

/** One line down to the last child, and from it one to each child in sight; those of the critical path last, above others. */
function tiesOf({ parent, children }: Trunk, seen: Viewport): Tie[] {
  const last = children.at(-1);
  if (!last) return [];
  const ties: Tie[] = [];
  const x = parent.x + CARD + (COLUMN - CARD) / 2;
  const y = middle(parent);
  if (children.length > 2) {
    const down = `M${parent.x + CARD} ${y}H${x}V${middle(last) - ROUND}`;
    ties.push({ key: `${parent.row.key} down`, path: down, critical: false });
  }
  for (const child of children) {
    const critical = child.row.kind === "message" && child.row.item.critical;
    const away = child.y + HEIGHT < seen.top - 200 || child.y > seen.top + seen.height + 200;
    if (away && !critical && children.length > 2) continue;
    const tie = { key: child.row.key, path: elbow(parent, child, x), critical };
    ties.push(tie);
  }
  return ties.sort((one, other) => Number(one.critical) - Number(other.critical));
}

function elbow(parent: Box, child: Box, x: number): string {
  const [from, to] = [middle(parent), middle(child)];
  if (from === to) return `M${parent.x + CARD} ${from}H${child.x}`;
  return `M${parent.x + CARD} ${from}H${x - ROUND}Q${x} ${from} ${x} ${from + ROUND}V${to - ROUND}Q${x} ${to} ${x + ROUND} ${to}H${child.x}`;
}

function middle({ y }: Box): number {
  return y + HEIGHT / 2;
}
