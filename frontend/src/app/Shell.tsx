import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { useOpenDeadLetters } from "~/api/overview";
import { describeFailure } from "~/api/problems";
import { session, useLogOut } from "~/api/session";
import { count } from "~/lib/format";
import { COMMAND_K, useShortcuts } from "~/lib/keyboard";
import { outbox } from "~/lib/mount";
import * as texts from "~/texts/app";
import { announce, Button, EnvironmentBadge, Icon, IconButton, OutboxSwitch } from "~/ui";
import { Live } from "./Live";
import { PAGES, type PageEntry } from "./pages";
import styles from "./Shell.module.css";
import { useMenu } from "./useMenu";

const Shortcuts = lazy(() => import("./Shortcuts"));

/** Title of a page that is still loading. */
export const LOADING = "…";

/** The frame of every page: navigation, live status, and the current user. */
export function Shell({ children }: { children: ReactNode }) {
  const [location, navigate] = useLocation();
  const menu = useMenu(location);
  const [help, setHelp] = useState(false);
  useShortcuts(texts.everywhere, [
    { keys: "?", label: texts.listShortcuts, run: () => setHelp(true) },
    { keys: COMMAND_K, label: texts.goTo(texts.search), run: () => navigate("/search") },
    ...PAGES.map(({ key, name, paths }) => ({
      keys: `g ${key}`,
      label: texts.goTo(name),
      run: () => navigate(paths[0]),
    })),
  ]);
  useFocusOnNavigation(location.split("/")[1] ?? "", !menu.open);
  return (
    <div className={styles.shell}>
      <button type="button" className={styles.skip} onClick={skipToContent}>
        {texts.skip}
      </button>
      <header className={styles.bar}>
        <IconButton
          ref={menu.button}
          icon={menu.open ? "cross" : "menu"}
          label={menu.open ? texts.closeMenu : texts.openMenu}
          aria-expanded={menu.open}
          aria-controls="pages"
          onClick={menu.toggle}
        />
        <Brand />
        <Live />
      </header>
      {menu.open && <div className={styles.backdrop} aria-hidden="true" onClick={menu.close} />}
      <aside className={styles.side} data-open={menu.open || undefined} id="pages" ref={menu.pages}>
        <div className={styles.brandRow}>
          <Brand />
        </div>
        <nav aria-label={texts.pages}>
          <ul className={styles.places}>
            {PAGES.map((entry) => (
              <NavigationItem key={entry.name} entry={entry} />
            ))}
          </ul>
        </nav>
        <div className={styles.end}>
          <Live />
          <Button look="quiet" icon="keyboard" onClick={() => setHelp(true)}>
            {texts.shortcuts}
          </Button>
          <CurrentUser />
        </div>
      </aside>
      <main className={styles.main} inert={menu.open}>
        {children}
      </main>
      {help && (
        <Suspense>
          <Shortcuts onClose={() => setHelp(false)} />
        </Suspense>
      )}
    </div>
  );
}

function skipToContent(): void {
  document.getElementById("page-title")?.focus();
}

/** Moves focus to the title after navigation, where keyboard and screen reader users continue. */
function useFocusOnNavigation(page: string, ready: boolean): void {
  const previous = useRef(page);
  useEffect(() => {
    if (!ready || previous.current === page) return;
    previous.current = page;
    window.scrollTo(0, 0);
    return onceTitleRenders((title) =>
      (document.querySelector<HTMLElement>("[data-arrival]") ?? title).focus({ preventScroll: true }),
    );
  }, [page, ready]);
}

/** Calls back once the page has rendered its title, because its code may still be loading. */
function onceTitleRenders(callback: (title: HTMLElement) => void): () => void {
  const observer = new MutationObserver(check);
  function check() {
    const titles = [...document.querySelectorAll<HTMLElement>("#page-title")];
    const title = titles.find(
      (element) => element.textContent !== LOADING && element.getClientRects().length > 0,
    );
    if (!title) return;
    observer.disconnect();
    callback(title);
  }
  observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["style"] });
  check();
  return () => observer.disconnect();
}

function Brand() {
  const { data } = useQuery(session);
  const environment = data?.environment;
  return (
    <>
      <Link href="/" className={styles.brand ?? ""}>
        <img src="./icon.svg" alt="" width="24" height="24" /> {texts.product}
      </Link>
      {environment && (
        <span className={styles.environment} title={environment.name}>
          <EnvironmentBadge {...environment} />
        </span>
      )}
      {outbox !== undefined && (
        <div className={styles.outbox}>
          <OutboxSwitch />
        </div>
      )}
    </>
  );
}

function NavigationItem({ entry: { paths, name, icon } }: { entry: PageEntry }) {
  const [below] = useRoute(`${paths[0]}/*?`);
  const [exact] = useRoute(paths[0]);
  const isCurrent = paths[0] === "/" ? exact : below;
  return (
    <li>
      <Link href={paths[0]} className={styles.place ?? ""} aria-current={isCurrent ? "page" : undefined}>
        <Icon name={icon} />
        {name}
        {paths[0] === "/dead-letters" && <OpenDeadLetters />}
      </Link>
    </li>
  );
}

/** Number of open dead letters. */
function OpenDeadLetters() {
  const { data } = useOpenDeadLetters();
  if (!data || data.value === 0) return null;
  return (
    <span className={styles.count}>
      {count(data)}
      <span className="unseen"> {texts.open}</span>
    </span>
  );
}

function reportLogOutFailure(thrown: unknown): void {
  announce(texts.logOutFailed(describeFailure(thrown)), "bad");
}

function CurrentUser() {
  const { data } = useQuery(session);
  const logOut = useLogOut();
  if (!data) return null;
  return (
    <div className={styles.person}>
      <span>
        <strong>{data.name}</strong>
        <br />
        <span className={styles.role}>
          {data.role}
          {data.read_only && texts.readOnlySuffix}
        </span>
      </span>
      {data.authenticated_by === "session" && (
        <IconButton
          icon="out"
          label={texts.logOut}
          onClick={() => void logOut().catch(reportLogOutFailure)}
        />
      )}
    </div>
  );
}
