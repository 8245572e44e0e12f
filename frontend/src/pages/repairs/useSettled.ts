import { useEffect, useRef, useState } from "react";

/** The last value that stood still for a moment; while it is undefined, the one before it counts. */
export function useSettled<T>(value: T | undefined, initial: T, milliseconds = 400) {
  const [settled, setSettled] = useState(initial);
  const latest = useRef(value);
  latest.current = value;
  const text = JSON.stringify(value);
  useEffect(() => {
    const settle = () => latest.current !== undefined && setSettled(latest.current);
    const timer = setTimeout(settle, text === undefined ? 0 : milliseconds);
    return () => clearTimeout(timer);
  }, [text, milliseconds]);
  return { settled, isSettled: text === JSON.stringify(settled) };
}
