// What part of the time is in sight, and what moves it.

import { useMemo, useState } from "react";
import { useShortcuts } from "~/lib/keyboard";
import type { Drawn } from "./drawn";
import { reach, type Span } from "./lanes";
import { focused, panned, withRoom, zoomed } from "./ruler-marks";

export interface Zoom {
  whole: Span | undefined;
  view: Span;
  origin: number;
  isWhole: boolean;
  show(view: Span | undefined): void;
  closer(): void;
  farther(): void;
  earlier(): void;
  later(): void;
  /** Undefined where nothing is chosen, or no time of it is known. */
  toSelected: (() => void) | undefined;
}

const NOTHING: Span = { from: 0, to: 1 };

/** What part of the time is in sight. As long as nobody zooms it is the whole, also when that grows. */
export function useZoom({ extent, lanes, tree }: Drawn, selected: string | undefined): Zoom {
  const [chosen, setChosen] = useState<Span>();
  const whole = useMemo(() => extent && withRoom(extent), [extent]);
  const within = whole ?? NOTHING;
  const view = chosen ?? within;
  const item = selected === undefined ? undefined : tree.byId.get(selected);
  const taken = item && reach(lanes.get(item) ?? { outbox: { pieces: [], marks: [] }, legs: [] });
  const show = (next: Span | undefined) =>
    setChosen(next && next.to - next.from >= within.to - within.from ? undefined : next);
  const zoom: Zoom = {
    whole,
    view,
    origin: extent?.from ?? 0,
    isWhole: chosen === undefined,
    show,
    closer: () => show(zoomed(view, within, 2)),
    farther: () => show(zoomed(view, within, 0.5)),
    earlier: () => show(panned(view, within, -0.25)),
    later: () => show(panned(view, within, 0.25)),
    toSelected: taken && (() => show(focused(taken, within))),
  };
  useShortcuts("Waterfall", [
    { keys: "+", label: "Zoom in", run: zoom.closer },
    { keys: "-", label: "Zoom out", run: zoom.farther },
    { keys: "0", label: "Show the whole time", run: () => show(undefined) },
    { keys: "h", label: "Earlier", run: zoom.earlier },
    { keys: "l", label: "Later", run: zoom.later },
    { keys: "z", label: "Zoom to the selected message", run: () => zoom.toSelected?.() },
  ]);
  return zoom;
}
