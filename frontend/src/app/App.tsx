import { Tooltip } from "@base-ui/react/tooltip";
import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Route, Router, Switch as Routes } from "wouter";
import { listenToEvents, suspendUpdates, useIsSuspended } from "~/api/live";
import { isUnauthenticated, toFailure } from "~/api/problems";
import { newQueryClient } from "~/api/queries";
import { session } from "~/api/session";
import { listenForShortcuts } from "~/lib/keyboard";
import { base } from "~/lib/mount";
import { usePreferences } from "~/lib/preferences";
import { hostLoginUrl, listenForLoginLinks, takeTokenFromUrl } from "~/pages/login/link";
import * as texts from "~/texts/app";
import { Announcements, Empty, Loading, Page, Problem } from "~/ui";
import { Boundary } from "./Boundary";
import { PAGES } from "./pages";
import { LOADING, Shell } from "./Shell";

const Login = lazy(() => import("~/pages/login/Login"));
const HostLogin = lazy(() => import("~/pages/login/HostLogin"));
const Switch = lazy(() => import("~/pages/login/SwitchSession"));
const queries = newQueryClient();
/** Token of the login link that the service prints in development. */
const LINK_TOKEN = takeTokenFromUrl();
/** Defined if the host application handles login. */
const HOST = hostLoginUrl();

export function App() {
  useEffect(() => listenForShortcuts(), []);
  return (
    <QueryClientProvider client={queries}>
      <Tooltip.Provider>
        <Router base={base}>
          <Boundary>
            <Suspense>
              <SessionGate />
            </Suspense>
          </Boundary>
          <Announcements />
        </Router>
      </Tooltip.Provider>
    </QueryClientProvider>
  );
}

/**
 * Shows the dashboard to logged-in users, otherwise the login. The URL stays, so the user returns to it. An open dialog stays as
 * well, with what was typed: it shows that the session has ended, and that a login in another tab continues it.
 */
function SessionGate() {
  const [link, setLink] = useState(LINK_TOKEN);
  const query = useQuery({ ...session, refetchOnWindowFocus: ({ state }) => state.error !== null });
  const isInDialog = useIsSuspended("dialog");
  const { data, refetch } = query;
  const error = data && isInDialog ? null : query.error;
  const [wasLoggedIn, setWasLoggedIn] = useState(false);
  if (data && !wasLoggedIn) setWasLoggedIn(true);
  useEffect(() => listenForLoginLinks(setLink), []);
  const clearLink = () => setLink(undefined);
  if (data && !error && link && HOST === undefined)
    return <Switch from={data} token={link} onDone={clearLink} />;
  if (error && HOST !== undefined && [401, 403].includes(toFailure(error).status)) {
    return <HostLogin at={HOST} of={error} onRetry={() => void refetch()} />;
  }
  if (error && isUnauthenticated(error)) {
    return <Login key={link} linked={link} ended={wasLoggedIn} onEntered={clearLink} />;
  }
  if (data) return <Dashboard />;
  return (
    <main>
      <Page title={texts.product}>
        {error ? <Problem of={error} onRetry={() => void refetch()} /> : <Loading />}
      </Page>
    </main>
  );
}

function Dashboard() {
  const { live } = usePreferences();
  useEffect(() => listenToEvents(queries), []);
  useEffect(() => (live ? undefined : suspendUpdates("paused")), [live]);
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
          <Routes>
            {PAGES.flatMap(({ paths, page }) =>
              paths.map((path) => <Route key={paths[0]} path={path} component={page} />),
            )}
            <Route>
              <Page title={texts.notFound}>
                <Empty title={texts.noSuchPage}>{texts.noSuchPageHint}</Empty>
              </Page>
            </Route>
          </Routes>
        </Suspense>
      </Boundary>
    </Shell>
  );
}
