// What part of a scrolling place is in sight, for drawings that draw no more than that.

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

export interface Viewport {
  top: number;
  left: number;
  width: number;
  height: number;
}

/** Changes at most once a frame. */
export function useViewport(): [RefObject<HTMLDivElement | null>, Viewport] {
  const place = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState<Viewport>({ top: 0, left: 0, width: 0, height: 0 });
  useLayoutEffect(() => {
    if (place.current) setSeen(partInSight(place.current));
  }, []);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let frame = 0;
    const look = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setSeen((before) => same(before, partInSight(element)));
      });
    };
    const resized = new ResizeObserver(look);
    resized.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      resized.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  return [place, seen];
}

function partInSight({ scrollTop, scrollLeft, clientWidth, clientHeight }: HTMLElement): Viewport {
  return { top: scrollTop, left: scrollLeft, width: clientWidth, height: clientHeight };
}

function same(before: Viewport, now: Viewport): Viewport {
  const keys = ["top", "left", "width", "height"] as const;
  return keys.every((key) => before[key] === now[key]) ? before : now;
}

/** Scrolls as little as it takes to have a part of a place in sight, below `head` pixels that cover its top. */
export function bringIntoSight(
  element: HTMLElement,
  part: { top: number; height: number; left?: number; width?: number },
  head = 0,
): void {
  const { scrollTop, scrollLeft, clientHeight, clientWidth } = element;
  const { top, height, left = scrollLeft, width = 0 } = part;
  if (top < scrollTop) element.scrollTop = top;
  else if (top + height > scrollTop + clientHeight - head)
    element.scrollTop = top + height - clientHeight + head;
  if (left < scrollLeft) element.scrollLeft = left;
  else if (left + width > scrollLeft + clientWidth) element.scrollLeft = left + width - clientWidth;
}
