import { Link } from "wouter";
import type { Topology, Warning } from "~/api/topology";
import { capital, plural } from "~/lib/format";
import { Badge, CopyButton, Icon, Panel } from "~/ui";
import { commandsFor, lossOf } from "./around";
import styles from "./Topology.module.css";
import { useWide } from "./useWide";

/** What is wrong, and what would mend it. */
export function Warnings({ of }: { of: Topology }) {
  const { warnings, degraded } = of;
  if (warnings.length === 0) {
    if (degraded.length > 0) return null;
    return (
      <p>
        <Badge tone="good">Nothing is wrong</Badge> Each message has a queue to go to, and each queue somebody
        who takes from it.
      </p>
    );
  }
  return (
    <Panel title={plural(warnings.length, "warning")}>
      <ul className={styles.warnings}>
        {warnings.map((warning) => (
          <One key={`${warning.code} ${warning.node} ${warning.summary}`} warning={warning} of={of} />
        ))}
      </ul>
    </Panel>
  );
}

function One({ warning, of }: { warning: Warning; of: Topology }) {
  const { code, severity, summary, mend, node } = warning;
  const wide = useWide();
  const name = node?.slice(node.indexOf(":") + 1) ?? "";
  const loss = lossOf(code, of.broker);
  return (
    <li className={styles.warning}>
      <p>
        <Badge tone={severity === "error" ? "bad" : "warn"} icon="dead">
          {severity}
        </Badge>{" "}
        <strong>{sentence(summary)}</strong>{" "}
        {node && wide && (
          <Link href={`/topology?node=${encodeURIComponent(node)}`} className={styles.show ?? ""}>
            Show it
          </Link>
        )}
      </p>
      <p>{sentence(mend)}</p>
      {commandsFor(code, name, of.broker).map((command) => (
        <div key={command} className={styles.command}>
          <code>{command}</code>
          <CopyButton text={command} label={`Copy ${command}`} />
        </div>
      ))}
      {loss && (
        <p className={styles.quiet}>
          <Icon name="dead" /> {loss}
        </p>
      )}
    </li>
  );
}

function sentence(words: string): string {
  return `${capital(words)}.`;
}
