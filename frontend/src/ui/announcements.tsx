import { lazy, Suspense } from "react";

const Toasts = lazy(() => import("./Toasts"));

/** The place of announcements; what shows them is loaded after the page. */
export function Announcements() {
  return (
    <Suspense>
      <Toasts />
    </Suspense>
  );
}
