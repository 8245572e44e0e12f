import { useEffect, useRef, useState } from "react";
import { useLocation, useParams } from "wouter";
import type { MessageState } from "~/api/messages";
import { useWhyNot } from "~/api/session";
import { capitalize } from "~/lib/format";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/messages";
import { publish } from "~/texts/waiting";
import { Button, Page, SidePanel, stateStyle, Tabs } from "~/ui";
import { Export } from "~/ui/Export";
import { Detail } from "./detail/Detail";
import { FilterFields } from "./FilterFields";
import { List } from "./list/List";
import { rowOf } from "./list/Row";
import { useList } from "./list/useList";
import styles from "./Messages.module.css";
import { PublishDialog } from "./PublishDialog";
import { addressOf, listOf, PARAMETERS, STATES } from "./parameters";

const ALL = "all";
const TABS: readonly (MessageState | typeof ALL)[] = [ALL, ...STATES];

/** The messages in the outbox by state. The open one is in the side panel. */
export default function Messages() {
  const id = useParams<{ id?: string }>().id;
  const state = useUrlState(PARAMETERS);
  const [urlState, change] = state;
  const list = useList(urlState);
  const [, navigate] = useLocation();
  const go = (to: string) => navigate(addressOf(to), { replace: id !== undefined });
  const denied = useWhyNot("repair");
  const [publishing, setPublishing] = useState(false);
  useRestoreFocus(id);
  return (
    <Page
      title={texts.title}
      tab={id === undefined ? texts.title : texts.titleOf(id)}
      wide
      actions={
        <>
          <Export list="messages" filters={listOf(urlState)} />
          <Button icon="messages" whyNot={denied} onClick={() => setPublishing(true)}>
            {publish}
          </Button>
        </>
      }
    >
      {publishing && <PublishDialog onClose={() => setPublishing(false)} />}
      <div className={styles.page} data-open={id !== undefined || undefined}>
        <div className={styles.top}>
          <FilterFields state={state} shown={list.stable.items} />
        </div>
        <div className={styles.views}>
          <Tabs
            label={texts.status}
            tabs={TABS.map((value) => ({
              value,
              label: value === ALL ? texts.all : capitalize(stateStyle(value).label),
              count: list.countOf(value === ALL ? undefined : value),
            }))}
            value={urlState.state ?? ALL}
            onChoose={(chosen) => change({ state: chosen === ALL ? undefined : chosen, cursor: undefined })}
          >
            <div className={styles.parts}>
              <div className={styles.list}>
                <List
                  list={list}
                  urlState={urlState}
                  open={id}
                  onOpen={go}
                  onPageChange={(cursor) => change({ cursor })}
                />
              </div>
              {id !== undefined && (
                <SidePanel>
                  <Detail
                    key={id}
                    id={id}
                    before={list.neighbour(id, -1)}
                    after={list.neighbour(id, 1)}
                    onGo={go}
                    onClose={() => navigate(addressOf(undefined))}
                  />
                </SidePanel>
              )}
            </div>
          </Tabs>
        </div>
      </div>
    </Page>
  );
}

/** Returns focus to the row of a message that is closed. */
function useRestoreFocus(id: string | undefined): void {
  const last = useRef<string>(undefined);
  useEffect(() => {
    if (id === undefined && last.current !== undefined) rowOf(last.current)?.focus();
    last.current = id;
  }, [id]);
}
