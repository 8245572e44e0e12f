import type { Schemas } from "~/api/client";
import * as texts from "~/texts/external";

export function hasLinks({ log_url, trace_url }: Schemas["ExternalLinks"]): boolean {
  return Boolean(log_url || trace_url);
}

/** Links to a message's logs and trace in external systems, where available. */
export function External({ of: { log_url, trace_url } }: { of: Schemas["ExternalLinks"] }) {
  const links = [
    [texts.logs, log_url],
    [texts.trace, trace_url],
  ] as const;
  return links.map(
    ([label, href]) =>
      href && (
        <a key={label} href={href} target="_blank" rel="noopener noreferrer">
          {label}
        </a>
      ),
  );
}
