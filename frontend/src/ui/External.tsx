import type { ReactNode } from "react";
import type { Schemas } from "~/api/client";
import * as texts from "~/texts/external";
import { CopyButton } from "./Copy";
import styles from "./External.module.css";

/** A message, or an attempt to handle it. */
type Traced = { trace_id: string | null; external: Schemas["ExternalLinks"] };

/** Entries for `Facts`: the trace ID, and links to the message in external systems, where available. */
export function externalFacts({ trace_id, external }: Traced): (readonly [string, ReactNode])[] {
  const { log_url, trace_url } = external;
  const links = [
    [texts.logs, log_url],
    [texts.trace, trace_id === null ? trace_url : null], // otherwise its ID is the link
  ] as const;
  return [
    [texts.traceId, trace_id !== null && <TraceId key="trace" id={trace_id} url={trace_url} />],
    [
      texts.external,
      links.some(([, url]) => url) &&
        links.map(
          ([label, url]) =>
            url && (
              <ExternalLink key={label} to={url}>
                {label}
              </ExternalLink>
            ),
        ),
    ],
  ];
}

/** A trace ID, which can be copied, and links to the trace if there is a `url`. */
export function TraceId({ id, url }: { id: string; url: string | null }) {
  const shown = <code>{id}</code>;
  return (
    <span className={styles.trace}>
      {url ? <ExternalLink to={url}>{shown}</ExternalLink> : shown}{" "}
      <CopyButton text={id} label={texts.copyTraceId} />
    </span>
  );
}

function ExternalLink({ to, children }: { to: string; children: ReactNode }) {
  return (
    <a href={to} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
