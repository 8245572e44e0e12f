import { useEffect, useRef } from "react";
import { useLocation, useParams } from "wouter";
import type { Status } from "~/api/dead-letters";
import { useUrlState } from "~/lib/url-state";
import { Beside, Page, Tabs } from "~/ui";
import styles from "./DeadLetters.module.css";
import { Detail } from "./detail/Detail";
import { Groups } from "./groups/Groups";
import { List } from "./list/List";
import { rowOf } from "./list/Row";
import { Standing } from "./list/Standing";
import { useList } from "./list/useList";
import { Narrowing } from "./Narrowing";
import { addressOf, filtersOf, PARAMETERS, STATUSES } from "./parameters";
import { Views } from "./Views";

/** What failed for good: by what it has in common, or one by one, with the one that is open beside the list. */
export default function DeadLetters() {
  const id = useParams<{ id?: string }>().id;
  const state = useUrlState(PARAMETERS);
  const [place, change] = state;
  const list = useList(place);
  const [, navigate] = useLocation();
  const go = (to: string | undefined) =>
    navigate(addressOf(to), { replace: id !== undefined && to !== undefined });
  useReturn(id);
  const groups = place.view === "groups" && id === undefined;
  return (
    <Page title="Dead letters" tab={id === undefined ? "Dead letters" : `Dead letter ${id}`} wide>
      <div className={styles.page} data-open={id !== undefined || undefined}>
        <div className={styles.top}>
          <Standing page={list.query.data} />
          <div className={styles.tools}>
            <Narrowing state={state} facets={list.query.data?.facets} />
            <Views state={state} onLeave={() => id !== undefined && go(undefined)} />
          </div>
        </div>
        <div className={styles.list}>
          <Tabs<Status>
            label="Status"
            tabs={STATUSES.map(([value, label]) => ({ value, label, count: list.countOf(value) }))}
            value={place.status}
            onChoose={(status) => change({ status, cursor: undefined })}
          >
            {groups ? (
              <Groups filters={filtersOf(place)} by={place.by} onNarrow={change} />
            ) : (
              <List list={list} open={id} place={place} onOpen={go} onTurn={(cursor) => change({ cursor })} />
            )}
          </Tabs>
        </div>
        {id !== undefined && (
          <Beside>
            <Detail
              key={id}
              id={id}
              before={list.beside(id, -1)}
              after={list.beside(id, 1)}
              selecting={list.selecting}
              onGo={go}
              onSettled={() => go(list.beside(id, 1) ?? list.beside(id, -1))}
            />
          </Beside>
        )}
      </div>
    </Page>
  );
}

/** Closed, a letter gives focus back to its row; on narrow screens also the place of the page. */
function useReturn(id: string | undefined): void {
  const last = useRef<{ id: string; top: number }>(undefined);
  const top = useRef(0);
  useEffect(() => {
    const keep = () => {
      if (id === undefined) top.current = window.scrollY;
    };
    window.addEventListener("scroll", keep, { passive: true });
    return () => window.removeEventListener("scroll", keep);
  }, [id]);
  useEffect(() => {
    if (id !== undefined) {
      const stepped = last.current !== undefined;
      last.current = { id, top: last.current?.top ?? top.current };
      return stepped ? keepFocus(id) : undefined;
    }
    const left = last.current;
    last.current = undefined;
    if (!left) return;
    if (isNarrow()) window.scrollTo(0, left.top);
    rowOf(left.id)?.focus({ preventScroll: isNarrow() });
  }, [id]);
}

/** After an action the next letter opens, and the button that had focus is gone: its row has it then. */
function keepFocus(id: string): () => void {
  const timer = setTimeout(() => {
    if (document.activeElement === document.body) rowOf(id)?.focus({ preventScroll: true });
  }, 100);
  return () => clearTimeout(timer);
}

function isNarrow(): boolean {
  return window.matchMedia("(max-width: 1180px)").matches;
}
