import { useEffect, useRef, useState } from "react";

/** Debounces a value. Keeps the previous value while it is undefined. */
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
