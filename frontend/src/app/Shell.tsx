import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { session, useLogOut } from "~/api/session";
import { useShortcuts } from "~/lib/keyboard";
import { prefer, usePreferences } from "~/lib/preferences";
import { Badge, Button, Icon, IconButton, useLiveWords } from "~/ui";
import { PLACES, type Place } from "./places";
import styles from "./Shell.module.css";
import { Shortcuts } from "./Shortcuts";

/** What is around every page: where one may go, who one is, and whether what one sees is live. */
export function Shell({ children }: { children: ReactNode }) {
  const [location, navigate] = useLocation();
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  useShortcuts("Everywhere", [
    { keys: "?", label: "List the shortcuts", run: () => setHelp(true) },
    ...PLACES.map(({ key, name, paths }) => ({
      keys: `g ${key}`,
      label: `Go to ${name}`,
      run: () => navigate(paths[0]),
    })),
  ]);
  useFocusOnArrival(location.split("/")[1] ?? "");
  // biome-ignore lint/correctness/useExhaustiveDependencies: another address closes the menu
  useEffect(() => setOpen(false), [location]);
  return (
    <div className={styles.shell}>
      <button type="button" className={styles.skip} onClick={skip}>
        Skip to the page
      </button>
      <header className={styles.bar}>
        <IconButton
          icon="menu"
          label={open ? "Close the menu" : "Open the menu"}
          aria-expanded={open}
          aria-controls="pages"
          onClick={() => setOpen(!open)}
        />
        <Brand />
        <Live />
      </header>
      <aside className={styles.side} data-open={open || undefined} id="pages">
        <div className={styles.brandRow}>
          <Brand />
        </div>
        <nav aria-label="Pages">
          <ul className={styles.places}>
            {PLACES.map((place) => (
              <Entry key={place.name} place={place} />
            ))}
          </ul>
        </nav>
        <div className={styles.end}>
          <Live />
          <Button look="quiet" icon="keyboard" onClick={() => setHelp(true)}>
            Shortcuts
          </Button>
          <Person />
        </div>
      </aside>
      <main className={styles.main}>{children}</main>
      <Shortcuts open={help} onClose={() => setHelp(false)} />
    </div>
  );
}

function skip(): void {
  document.getElementById("page-title")?.focus();
}

/** After a change of pages focus is at the new one's title, so that keyboards and screen readers go on from there. */
function useFocusOnArrival(page: string): void {
  const before = useRef(page);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    document.getElementById("page-title")?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [page]);
}

function Brand() {
  return (
    <Link href="/" className={styles.brand ?? ""}>
      <img src="./icon.svg" alt="" width="24" height="24" /> Outbox
    </Link>
  );
}

function Entry({ place: { paths, name, icon } }: { place: Place }) {
  const [below] = useRoute(`${paths[0]}/*?`);
  const [exact] = useRoute(paths[0]);
  const here = paths[0] === "/" ? exact : below;
  return (
    <li>
      <Link href={paths[0]} className={styles.place ?? ""} aria-current={here ? "page" : undefined}>
        <Icon name={icon} />
        {name}
      </Link>
    </li>
  );
}

function Live() {
  const { words, tone } = useLiveWords();
  const { live } = usePreferences();
  return (
    <span className={styles.live}>
      <Badge tone={tone} icon={tone === "warn" ? "lost" : live ? "play" : "pause"}>
        {words}
      </Badge>
      <IconButton
        icon={live ? "pause" : "play"}
        label={live ? "Pause the live view" : "Resume the live view"}
        onClick={() => prefer({ live: !live })}
      />
    </span>
  );
}

function Person() {
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
          {data.read_only && ", read-only"}
        </span>
      </span>
      {data.authenticated_by === "session" && (
        <IconButton icon="out" label="Log out" onClick={() => void logOut()} />
      )}
    </div>
  );
}
