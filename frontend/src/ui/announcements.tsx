import { lazy, Suspense } from "react";

const Toasts = lazy(() => import("./Toasts"));

/** Announcements. The toasts are loaded after the page. */
export function Announcements() {
  return (
    <Suspense>
      <Toasts />
    </Suspense>
  );
}
