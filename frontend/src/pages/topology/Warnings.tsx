import { Link } from "wouter";
import type { Topology, Warning } from "~/api/topology";
import { capitalize } from "~/lib/format";
import * as texts from "~/texts/topology";
import { Badge, CopyButton, Icon, Panel } from "~/ui";
import { commandsFor, lossOf } from "./commands";
import styles from "./Topology.module.css";
import { useWideScreen } from "./useWideScreen";

/** Errors and warnings about the topology, each with a hint. */
export function Warnings({ of }: { of: Topology }) {
  const { warnings, degraded } = of;
  if (warnings.length === 0) {
    if (degraded.length > 0) return null;
    return (
      <p>
        <Badge tone="good">{texts.ok}</Badge> {texts.allFine}
      </p>
    );
  }
  const errors = warnings.filter(({ severity }) => severity === "error").length;
  return (
    <Panel title={texts.problemsCount(errors, warnings.length - errors)}>
      <ul className={styles.warnings}>
        {warnings.map((warning) => (
          <One key={`${warning.code} ${warning.node} ${warning.summary}`} warning={warning} of={of} />
        ))}
      </ul>
    </Panel>
  );
}

function One({ warning, of }: { warning: Warning; of: Topology }) {
  const { code, severity, summary, hint, node } = warning;
  const wide = useWideScreen();
  const name = node?.slice(node.indexOf(":") + 1) ?? "";
  const loss = lossOf(code, of.broker);
  return (
    <li className={styles.warning}>
      <p>
        <SeverityBadge of={severity} /> <strong>{sentence(summary)}</strong>{" "}
        {node && wide && (
          <Link href={`/topology?node=${encodeURIComponent(node)}`} className={styles.show ?? ""}>
            {texts.show}
          </Link>
        )}
      </p>
      <p>{sentence(hint)}</p>
      {commandsFor(code, name, of.broker).map((command) => (
        <div key={command} className={styles.command}>
          <code>{command}</code>
          <CopyButton text={command} label={texts.copyCommand(command)} />
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

export function SeverityBadge({ of }: { of: Warning["severity"] }) {
  return (
    <Badge tone={of === "error" ? "bad" : "warn"} icon="dead">
      {of}
    </Badge>
  );
}

function sentence(words: string): string {
  return `${capitalize(words)}.`;
}
