// Line icons on a 16 pixel grid. They accompany text; an icon-only button has an accessible name.

import type { ReactNode } from "react";

const SHAPES = {
  overview: <path d="M2.5 13.5v-5M6.2 13.5v-9M9.8 13.5v-6M13.5 13.5v-11" />,
  queues: <path d="M2.5 3h11v2.5h-11zM2.5 6.8h11v2.5h-11zM2.5 10.5h7V13h-7z" />,
  messages: <path d="M2 4h12v8.5H2zM2 4.5l6 4.5 6-4.5" />,
  dead: <path d="M8 2 14.5 13.5h-13zM8 6.2v3.4M8 11.6v.1" />,
  operations: <path d="M13.5 8A5.5 5.5 0 1 1 11 3.4M13.6 2v3h-3" />,
  chains: <path d="M3 3.5h4v3H3zM9 9.5h4v3H9zM5 6.5V11h4" />,
  components: <path d="M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5v.1M5 11v.1" />,
  topology: (
    <path d="M3.5 6a1.8 1.8 0 1 0 0-.1zM10.7 3.5a1.8 1.8 0 1 0 0-.1zM10.7 12a1.8 1.8 0 1 0 0-.1zM6.6 5.2l4-1.3M6.5 7l4.5 4" />
  ),
  alerts: <path d="M3.5 11.5h9c-1-1-1.3-2-1.3-4.5a3.2 3.2 0 0 0-6.4 0c0 2.5-.3 3.5-1.3 4.5zM6.8 13.6h2.4" />,
  audit: <path d="M4 1.8h8v12.4H4zM6 5h4M6 8h4M6 11h2" />,
  settings: <path d="M2 4.5h6M11 4.5h3M2 11.5h3M8 11.5h6M9.5 3v3M6.5 10v3" />,
  check: <path d="m3 8.5 3.2 3.2L13 4.8" />,
  cross: <path d="m4 4 8 8M12 4l-8 8" />,
  clock: <path d="M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.6" />,
  pause: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  play: <path d="M5 3.2v9.6L12.5 8z" />,
  stop: <path d="M4 4h8v8H4z" />,
  plus: <path d="M8 3.5v9M3.5 8h9" />,
  minus: <path d="M3.5 8h9" />,
  right: <path d="m6 3.5 4.5 4.5L6 12.5" />,
  left: <path d="M10 3.5 5.5 8l4.5 4.5" />,
  down: <path d="m3.5 6 4.5 4.5L12.5 6" />,
  up: <path d="M3.5 10 8 5.5l4.5 4.5" />,
  copy: <path d="M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z" />,
  download: <path d="M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11" />,
  search: <path d="M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.4 10.4 14 14" />,
  key: <path d="M5 10.5a2.7 2.7 0 1 0 0-.1zM7.2 8.6 13 2.8M10.5 5.3l2 2" />,
  eye: (
    <path d="M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 9.6a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2z" />
  ),
  info: <path d="M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.2v4M8 5v.1" />,
  lost: <path d="M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM3.9 12.1 12.1 3.9" />,
  edit: <path d="M2.5 13.5v-3l8-8 3 3-8 8zM9 4l3 3" />,
  trash: <path d="M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9M6.7 7v4M9.3 7v4" />,
  restore: <path d="M3 6.5h7a3.2 3.2 0 0 1 0 6.5H6M5.8 3.5 2.8 6.5l3 3" />,
  link: (
    <path d="M6.8 9.2a2.7 2.7 0 0 0 3.8 0l2.2-2.2A2.7 2.7 0 0 0 9 3.2L8 4.2M9.2 6.8a2.7 2.7 0 0 0-3.8 0L3.2 9A2.7 2.7 0 0 0 7 12.8l1-1" />
  ),
  keyboard: <path d="M1.5 4h13v8h-13zM4 6.7v.1M6.7 6.7v.1M9.3 6.7v.1M12 6.7v.1M5 9.5h6" />,
  out: <path d="M6.5 2.5h-4v11h4M10.5 5 13.5 8l-3 3M13.5 8h-8" />,
  more: <path d="M3.5 8v.1M8 8v.1M12.5 8v.1" />,
  menu: <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {SHAPES[name]}
    </svg>
  );
}
