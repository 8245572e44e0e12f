// The visible part of a scroll container, for views that render only that.

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

export interface Viewport {
  top: number;
  left: number;
  width: number;
  height: number;
}

/** Tracks the visible part of the container. Updates at most once per frame. */
export function useViewport(): [RefObject<HTMLDivElement | null>, Viewport] {
  const container = useRef<HTMLDivElement>(null);
  const [viewport, setViewport] = useState<Viewport>({ top: 0, left: 0, width: 0, height: 0 });
  useLayoutEffect(() => {
    if (container.current) setViewport(viewportOf(container.current));
  }, []);
  useEffect(() => {
    const element = container.current;
    if (!element) return;
    let frame = 0;
    const update = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setViewport((before) => unchanged(before, viewportOf(element)));
      });
    };
    const observer = new ResizeObserver(update);
    observer.observe(element);
    element.addEventListener("scroll", update, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      element.removeEventListener("scroll", update);
    };
  }, []);
  return [container, viewport];
}

function viewportOf({ scrollTop, scrollLeft, clientWidth, clientHeight }: HTMLElement): Viewport {
  return { top: scrollTop, left: scrollLeft, width: clientWidth, height: clientHeight };
}

function unchanged(before: Viewport, now: Viewport): Viewport {
  const keys = ["top", "left", "width", "height"] as const;
  return keys.every((key) => before[key] === now[key]) ? before : now;
}

/** Scrolls as little as needed to show a part of the container below a header of `head` pixels. */
export function scrollIntoView(
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
