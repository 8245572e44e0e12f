import { useNow } from "~/lib/clock";
import { age, moment, secondsSince, shortMoment, span } from "~/lib/format";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/ui";

/** A moment in the chosen zone; the whole of it, in both zones, on hover. */
export function Moment({
  at,
  short = false,
  milliseconds = false,
}: {
  at: string;
  short?: boolean;
  milliseconds?: boolean;
}) {
  const { zone } = usePreferences();
  return (
    <time dateTime={at} title={inBothZones(at)}>
      {short ? shortMoment(at, zone) : moment(at, zone, milliseconds)}
    </time>
  );
}

/** How long ago a moment was, ticking: `4 min ago`; `in 20 s` where it lies ahead. */
export function Ago({ at }: { at: string }) {
  const seconds = secondsSince(at, useNow());
  return (
    <time dateTime={at} title={inBothZones(at)}>
      {seconds >= 0 ? texts.ago(age(seconds)) : texts.ahead(age(-seconds))}
    </time>
  );
}

/** A span in seconds, `4 min 10 s`; an em dash where none is known. */
export function Span({ seconds }: { seconds: number | null | undefined }) {
  return <span title={seconds == null ? undefined : texts.secondsLong(seconds)}>{span(seconds)}</span>;
}

function inBothZones(at: string): string {
  return texts.inBothZones(moment(at, "utc", true), moment(at, "local", true));
}
