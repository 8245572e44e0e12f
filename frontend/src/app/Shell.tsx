import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { useOpenLetters } from "~/api/overview";
import { inOneLine } from "~/api/problems";
import { session, useLogOut } from "~/api/session";
import { count } from "~/lib/format";
import { COMMAND_K, useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/app";
import { announce, Badge, Button, Icon, IconButton } from "~/ui";
import { Live } from "./Live";
import { PAGES, type PageEntry } from "./pages";
import styles from "./Shell.module.css";
import { useMenu } from "./useMenu";

const Shortcuts = lazy(() => import("./Shortcuts"));

/** The title of a page that is on its way. */
export const LOADING = "…";

/** What is around every page: where one may go, who one is, and whether what one sees is live. */
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
  useFocusOnArrival(location.split("/")[1] ?? "", !menu.open);
  return (
    <div className={styles.shell}>
      <button type="button" className={styles.skip} onClick={skip}>
        {texts.skip}
      </button>
      <header className={styles.bar}>
        <IconButton
          ref={menu.button}
          icon={menu.open ? "cross" : "menu"}
          label={menu.open ? texts.closeMenu : texts.openMenu}
          aria-expanded={menu.open}
          aria-controls="pages"
          onClick={menu.turn}
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
            {PAGES.map((place) => (
              <NavigationItem key={place.name} place={place} />
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

function skip(): void {
  document.getElementById("page-title")?.focus();
}

/** After a change of pages focus is at the new one's title, so that keyboards and screen readers go on from there. */
function useFocusOnArrival(page: string, ready: boolean): void {
  const before = useRef(page);
  useEffect(() => {
    if (!ready || before.current === page) return;
    before.current = page;
    window.scrollTo(0, 0);
    return whenTitled((title) =>
      (document.querySelector<HTMLElement>("[data-arrival]") ?? title).focus({ preventScroll: true }),
    );
  }, [page, ready]);
}

/** Does it once the page has its title: one that is opened for the first time is on its way. */
function whenTitled(act: (title: HTMLElement) => void): () => void {
  const observer = new MutationObserver(look);
  function look() {
    const titles = [...document.querySelectorAll<HTMLElement>("#page-title")];
    const title = titles.find((one) => one.textContent !== LOADING && one.getClientRects().length > 0);
    if (!title) return;
    observer.disconnect();
    act(title);
  }
  observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["style"] });
  look();
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
          <Badge tone={TONES[environment.colour]} icon={null}>
            {environment.name}
          </Badge>
        </span>
      )}
    </>
  );
}

const TONES = { red: "bad", amber: "warn", green: "good", blue: "info", grey: "neutral" } as const;

function NavigationItem({ place: { paths, name, icon } }: { place: PageEntry }) {
  const [below] = useRoute(`${paths[0]}/*?`);
  const [exact] = useRoute(paths[0]);
  const here = paths[0] === "/" ? exact : below;
  return (
    <li>
      <Link href={paths[0]} className={styles.place ?? ""} aria-current={here ? "page" : undefined}>
        <Icon name={icon} />
        {name}
        {paths[0] === "/dead-letters" && <OpenLetters />}
      </Link>
    </li>
  );
}

/** How many dead letters wait for a decision. */
function OpenLetters() {
  const { data } = useOpenLetters();
  if (!data || data.value === 0) return null;
  return (
    <span className={styles.count}>
      {count(data)}
      <span className="unseen"> {texts.open}</span>
    </span>
  );
}

function say(thrown: unknown): void {
  announce(texts.logOutFailed(inOneLine(thrown)), "bad");
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
        <IconButton icon="out" label={texts.logOut} onClick={() => void logOut().catch(say)} />
      )}
    </div>
  );
}
