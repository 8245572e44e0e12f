import { useEffect, useRef } from "react";
import { useLocation, useParams } from "wouter";
import type { Status } from "~/api/dead-letters";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/dead-letters";
import { Page, SidePanel, Tabs } from "~/ui";
import { Export } from "~/ui/Export";
import styles from "./DeadLetters.module.css";
import { Detail } from "./detail/Detail";
import { FilterFields } from "./FilterFields";
import { Groups } from "./groups/Groups";
import { OneGroup } from "./groups/OneGroup";
import { List } from "./list/List";
import { ListNotices } from "./list/ListNotices";
import { rowOf } from "./list/Row";
import { useList } from "./list/useList";
import { addressOf, filtersOf, PARAMETERS, STATUSES } from "./parameters";
import { ViewSwitch } from "./ViewSwitch";

/** Dead letters, grouped or one by one. The open one is in the side panel. */
export default function DeadLetters() {
  const { group, id } = useParams<{ group?: string; id?: string }>();
  return group === undefined ? <Lists id={id} /> : <OneGroup key={group} id={group} />;
}

function Lists({ id }: { id: string | undefined }) {
  const state = useUrlState(PARAMETERS);
  const [urlState, change] = state;
  const list = useList(urlState);
  const [, navigate] = useLocation();
  const go = (to: string | undefined) =>
    navigate(addressOf(to), { replace: id !== undefined && to !== undefined });
  useRestoreFocus(id);
  const groups = urlState.view === "groups" && id === undefined;
  return (
    <Page
      title={texts.title}
      tab={id === undefined ? texts.title : texts.titleOf(id)}
      wide
      actions={<Export list="dlq" filters={{ ...filtersOf(urlState), sort: urlState.sort }} />}
    >
      <div className={styles.page} data-open={id !== undefined || undefined}>
        <div className={styles.top}>
          <ListNotices page={list.query.data} />
          <div className={styles.tools}>
            <FilterFields state={state} facets={list.query.data?.facets} />
            <ViewSwitch
              state={state}
              view={groups ? "groups" : "messages"}
              onLeave={() => id !== undefined && go(undefined)}
            />
          </div>
        </div>
        <div className={styles.list}>
          <Tabs<Status>
            label={texts.status}
            tabs={STATUSES.map(([value, label]) => ({ value, label, count: list.countOf(value) }))}
            value={urlState.status}
            onChoose={(status) => change({ status, cursor: undefined })}
          >
            {groups ? (
              <Groups
                filters={filtersOf(urlState)}
                by={urlState.by}
                status={urlState.group_status}
                onNarrow={change}
              />
            ) : (
              <List
                list={list}
                open={id}
                urlState={urlState}
                onOpen={go}
                onPageChange={(cursor) => change({ cursor })}
              />
            )}
          </Tabs>
        </div>
        {id !== undefined && (
          <SidePanel>
            <Detail
              key={id}
              id={id}
              before={list.neighbour(id, -1)}
              after={list.neighbour(id, 1)}
              selecting={list.selecting}
              onGo={go}
              onSettled={() => go(list.neighbour(id, 1) ?? list.neighbour(id, -1))}
            />
          </SidePanel>
        )}
      </div>
    </Page>
  );
}

/** Returns focus to the row of a dead letter that is closed. On narrow screens, restores the scroll position as well. */
function useRestoreFocus(id: string | undefined): void {
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

/** Moves focus to the row if it was lost. After an action the next dead letter opens, and the button that had focus is gone. */
function keepFocus(id: string): () => void {
  const timer = setTimeout(() => {
    if (document.activeElement === document.body) rowOf(id)?.focus({ preventScroll: true });
  }, 100);
  return () => clearTimeout(timer);
}

function isNarrow(): boolean {
  return window.matchMedia("(max-width: 1180px)").matches;
}
