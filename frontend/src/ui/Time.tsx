import { useNow } from "~/lib/clock";
import { age, moment, secondsSince, shortMoment, span } from "~/lib/format";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/ui";

/** A time in the user's time zone. The tooltip shows it in full, in UTC and local time. */
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

/** A ticking relative time: `4 min ago`, or `in 20 s` for future times. */
export function Ago({ at }: { at: string }) {
  const seconds = secondsSince(at, useNow());
  return (
    <time dateTime={at} title={inBothZones(at)}>
      {seconds >= 0 ? texts.ago(age(seconds)) : texts.ahead(age(-seconds))}
    </time>
  );
}

/** A duration: `4 min 10 s`, or an em dash if unknown. */
export function Span({ seconds }: { seconds: number | null | undefined }) {
  return <span title={seconds == null ? undefined : texts.secondsLong(seconds)}>{span(seconds)}</span>;
}

function inBothZones(at: string): string {
  return texts.inBothZones(moment(at, "utc", true), moment(at, "local", true));
}
