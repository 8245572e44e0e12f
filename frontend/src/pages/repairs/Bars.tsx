import { number } from "~/lib/format";
import * as texts from "~/texts/repairs";
import styles from "./Bars.module.css";

const MAX_BARS = 6;

/** A bar chart of counts by name, largest first. */
export function Bars({
  title,
  of,
  nameless,
  shorten = (name) => name,
}: {
  title: string;
  of: Record<string, number>;
  nameless: string;
  shorten?: (name: string) => string;
}) {
  const found = Object.entries(of).sort(([, one], [, other]) => other - one);
  const [largest = 1] = found.map(([, count]) => count);
  const others = found.slice(MAX_BARS);
  return (
    <div>
      <h3 className={styles.title}>{title}</h3>
      <ul className={styles.bars}>
        {found.slice(0, MAX_BARS).map(([name, count]) => (
          <li key={name}>
            <span className={styles.name} title={name || nameless}>
              {shorten(name) || nameless}
            </span>
            <span className={styles.track} aria-hidden="true">
              <span className={styles.bar} style={{ width: `${(100 * count) / largest}%` }} />
            </span>
            <span className={styles.count}>{number(count)}</span>
          </li>
        ))}
        {others.length > 0 && (
          <li>
            <span className={styles.name}>{texts.andMore(others.length)}</span>
            <span />
            <span className={styles.count}>{number(others.reduce((sum, [, count]) => sum + count, 0))}</span>
          </li>
        )}
      </ul>
    </div>
  );
}
