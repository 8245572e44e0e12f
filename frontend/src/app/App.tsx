import { Tooltip } from "@base-ui/react/tooltip";
import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Route, Router, Switch } from "wouter";
import { listenToEvents, rest } from "~/api/live";
import { failureOf } from "~/api/problems";
import { newQueryClient } from "~/api/queries";
import { session } from "~/api/session";
import { listen } from "~/lib/keyboard";
import { base } from "~/lib/mount";
import { usePreferences } from "~/lib/preferences";
import { tokenInAddress } from "~/pages/login/link";
import { Announcements, Empty, Loading, Page, Problem } from "~/ui";
import { Boundary } from "./Boundary";
import { PLACES } from "./places";
import { LOADING, Shell } from "./Shell";

const Login = lazy(() => import("~/pages/login/Login"));
const queries = newQueryClient();
/** Of the link that a start in development prints. */
const LINKED = tokenInAddress();

export function App() {
  useEffect(() => listen(), []);
  return (
    <QueryClientProvider client={queries}>
      <Tooltip.Provider>
        <Router base={base}>
          <Boundary>
            <Suspense>
              <Entrance />
            </Suspense>
          </Boundary>
        </Router>
        <Announcements />
      </Tooltip.Provider>
    </QueryClientProvider>
  );
}

/** Asks who is looking; nobody known sees the login, with the address as it is, to go on there afterwards. */
function Entrance() {
  const [link, setLink] = useState(LINKED);
  const { data, error, refetch } = useQuery({ ...session, enabled: link === undefined });
  const [wasInside, setWasInside] = useState(false);
  if (data && !wasInside) setWasInside(true);
  if (link !== undefined && !data) return <Login linked={link} onEntered={() => setLink(undefined)} />;
  if (error && failureOf(error).code === "unauthenticated") {
    return <Login ended={wasInside} onEntered={() => void queries.invalidateQueries()} />;
  }
  if (data) return <Inside />;
  return (
    <main>
      <Page title="Outbox">
        {error ? <Problem of={error} onRetry={() => void refetch()} /> : <Loading />}
      </Page>
    </main>
  );
}

function Inside() {
  const { live } = usePreferences();
  useEffect(() => listenToEvents(queries), []);
  useEffect(() => (live ? undefined : rest("paused")), [live]);
  return (
    <Shell>
      <Boundary>
        <Suspense
          fallback={
            <Page title={LOADING}>
              <Loading lines={6} />
            </Page>
          }
        >
          <Switch>
            {PLACES.flatMap(({ paths, page }) =>
              paths.map((path) => <Route key={paths[0]} path={path} component={page} />),
            )}
            <Route>
              <Page title="Not found">
                <Empty title="There is no such page.">
                  The address may be mistyped, or from another version.
                </Empty>
              </Page>
            </Route>
          </Switch>
        </Suspense>
      </Boundary>
    </Shell>
  );
}
