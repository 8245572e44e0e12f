// The visible time range, and the actions that change it.

import { useMemo, useState } from "react";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/chains";
import { boundsOf, type Span } from "./lanes";
import { focused, panned, withMargin, zoomed } from "./ruler-marks";
import type { ChainView } from "./view";

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
  /** Undefined without a selected message, or if that has no times. */
  toSelected: (() => void) | undefined;
}

const NO_RANGE: Span = { from: 0, to: 1 };

/** Provides the visible time range. Until the user zooms, that is the full range, also while it grows. */
export function useZoom({ extent, lanes, tree }: ChainView, selected: string | undefined): Zoom {
  const [chosen, setChosen] = useState<Span>();
  const whole = useMemo(() => extent && withMargin(extent), [extent]);
  const within = whole ?? NO_RANGE;
  const view = chosen ?? within;
  const item = selected === undefined ? undefined : tree.byId.get(selected);
  const bounds = item && boundsOf(lanes.get(item) ?? { outbox: { pieces: [], marks: [] }, deliveries: [] });
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
    toSelected: bounds && (() => show(focused(bounds, within))),
  };
  useShortcuts(texts.waterfall, [
    { keys: "+", label: texts.zoomIn, run: zoom.closer },
    { keys: "-", label: texts.zoomOut, run: zoom.farther },
    { keys: "0", label: texts.showWholeTime, run: () => show(undefined) },
    { keys: "h", label: texts.earlier, run: zoom.earlier },
    { keys: "l", label: texts.later, run: zoom.later },
    { keys: "z", label: texts.zoomToMessage, run: () => zoom.toSelected?.() },
  ]);
  return zoom;
}
