import { useEffect, useRef } from "react";
import { useLocation, useParams } from "wouter";
import type { MessageState } from "~/api/messages";
import { capital } from "~/lib/format";
import { useUrlState } from "~/lib/url-state";
import { Beside, lookOf, Page, Tabs } from "~/ui";
import { Detail } from "./detail/Detail";
import { List } from "./list/List";
import { rowOf } from "./list/Row";
import { useList } from "./list/useList";
import styles from "./Messages.module.css";
import { Narrowing } from "./Narrowing";
import { addressOf, PARAMETERS, STATES } from "./parameters";

const ALL = "all";
const TABS: readonly (MessageState | typeof ALL)[] = [ALL, ...STATES];

/** What is in the outbox, by where it is; one message beside the list, with why it is there. */
export default function Messages() {
  const id = useParams<{ id?: string }>().id;
  const state = useUrlState(PARAMETERS);
  const [place, change] = state;
  const list = useList(place);
  const [, navigate] = useLocation();
  const go = (to: string) => navigate(addressOf(to), { replace: id !== undefined });
  useReturn(id);
  return (
    <Page title="Messages" tab={id === undefined ? "Messages" : `Message ${id}`} wide>
      <div className={styles.page} data-open={id !== undefined || undefined}>
        <div className={styles.top}>
          <Narrowing state={state} shown={list.held.items} />
        </div>
        <div className={styles.views}>
          <Tabs
            label="State"
            tabs={TABS.map((value) => ({
              value,
              label: value === ALL ? "All" : capital(lookOf(value).label),
              count: list.countOf(value === ALL ? undefined : value),
            }))}
            value={place.state ?? ALL}
            onChoose={(chosen) => change({ state: chosen === ALL ? undefined : chosen, cursor: undefined })}
          >
            <div className={styles.parts}>
              <div className={styles.list}>
                <List
                  list={list}
                  place={place}
                  open={id}
                  onOpen={go}
                  onTurn={(cursor) => change({ cursor })}
                />
              </div>
              {id !== undefined && (
                <Beside>
                  <Detail
                    key={id}
                    id={id}
                    before={list.beside(id, -1)}
                    after={list.beside(id, 1)}
                    onGo={go}
                    onClose={() => navigate(addressOf(undefined))}
                  />
                </Beside>
              )}
            </div>
          </Tabs>
        </div>
      </div>
    </Page>
  );
}

/** Closed, a message gives focus back to its row. */
function useReturn(id: string | undefined): void {
  const last = useRef<string>(undefined);
  useEffect(() => {
    if (id === undefined && last.current !== undefined) rowOf(last.current)?.focus();
    last.current = id;
  }, [id]);
}
