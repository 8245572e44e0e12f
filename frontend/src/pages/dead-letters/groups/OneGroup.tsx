import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { deadLetter } from "~/api/dead-letter";
import { deadLetterGroup, deadLetters, type Group } from "~/api/dead-letters";
import { useFallbackInterval } from "~/api/live";
import { toFailure } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import { number } from "~/lib/format";
import { useShortcuts } from "~/lib/keyboard";
import { queueAddress } from "~/lib/url-state";
import { RepairDialog } from "~/pages/repairs";
import * as texts from "~/texts/dead-letters";
import { Ago, Button, Empty, Facts, Loaded, Loading, Page, Panel, State, Table } from "~/ui";
import { Sparkline } from "~/ui/charts/Sparkline";
import { Traceback } from "../detail/Traceback";
import { MarkOf, Since, trend } from "./Groups";
import styles from "./Groups.module.css";
import { MarkDialog } from "./MarkDialog";
import { NoteOf } from "./Note";
import { PolicyDialog, PolicyOf } from "./Policy";

/** A failure group: counts, times, versions, a sample, the latest messages, and actions on the whole group. */
export function OneGroup({ id }: { id: string }) {
  const query = useQuery({ ...deadLetterGroup(id), refetchInterval: useFallbackInterval() });
  const gone = query.error && toFailure(query.error).code === "not_found";
  const back = <Link href="/dead-letters">{texts.allGroups}</Link>;
  return (
    <Page title={query.data?.title ?? texts.groupTitle} tab={texts.groupTitle} aside={back}>
      {gone ? (
        <Empty title={texts.noSuchGroup}>{texts.noSuchGroupHint}</Empty>
      ) : (
        <Loaded query={query} loading={<Loading lines={8} />}>
          {(group) => <Parts group={group} />}
        </Loaded>
      )}
    </Page>
  );
}

function Parts({ group }: { group: Group }) {
  const denied = useWhyNot("repair");
  const [dialog, setDialog] = useState<"mark" | "policy" | "requeue" | "discard">();
  const whyNot = denied ?? (group.open_count === 0 ? texts.noneOpen : undefined);
  useShortcuts(texts.groupTitle, [
    { keys: "m", label: texts.mark, run: () => !denied && setDialog("mark") },
    { keys: "r", label: texts.requeueAll, run: () => !whyNot && setDialog("requeue") },
  ]);
  const close = () => setDialog(undefined);
  return (
    <>
      <div className={styles.actions}>
        <Button icon="check" whyNot={denied} onClick={() => setDialog("mark")}>
          {texts.mark}
        </Button>
        <Button icon="clock" whyNot={denied} onClick={() => setDialog("policy")}>
          {texts.policy}
        </Button>
        <Button icon="operations" whyNot={whyNot} onClick={() => setDialog("requeue")}>
          {texts.requeueAll}
        </Button>
        <Button icon="trash" whyNot={whyNot} onClick={() => setDialog("discard")}>
          {texts.discardAll}
        </Button>
      </div>
      <Panel title={texts.details}>
        <div className={styles.facts}>
          <Facts
            of={[
              [
                texts.status,
                group.status && (
                  <>
                    <State of={group.status} /> {group.mark && <MarkOf of={group.mark} />}
                  </>
                ),
              ],
              [
                texts.queue,
                group.queue ? (
                  <Link key="queue" href={queueAddress(group.queue)}>
                    {group.queue}
                  </Link>
                ) : (
                  texts.anyQueue
                ),
              ],
              [texts.handler, group.handlers.join(", ")],
              [texts.deadLettersHeading, texts.ofWhichOpen(group.count, group.open_count)],
              [texts.policy, group.requeue_policy && <PolicyOf key="policy" of={group.requeue_policy} />],
              [texts.group, group.id],
            ]}
          />
          <div className={styles.trend}>
            <Sparkline values={group.hourly_counts} label={trend(group.hourly_counts)} />
            <span className="quiet">{texts.last24Hours}</span>
          </div>
        </div>
        <Since group={group} />
        <NoteOf group={group} />
      </Panel>
      <Panel title={texts.versionsHeading} flush={group.versions.length > 0}>
        {group.versions.length === 0 ? (
          <p className="quiet">{texts.noVersions}</p>
        ) : (
          <Table
            label={texts.versionsTable}
            head={[texts.serviceVersion, texts.count, texts.firstSeen, texts.lastSeen]}
          >
            {group.versions.map((each) => (
              <tr key={each.service_version}>
                <th scope="row">{each.service_version}</th>
                <td>{number(each.count)}</td>
                <td>
                  <Ago at={each.first_failed_at} />
                </td>
                <td>
                  <Ago at={each.last_failed_at} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Panel>
      <Sample id={group.sample_id} />
      <Latest group={group} />
      {dialog === "policy" && <PolicyDialog group={group} onClose={close} />}
      {dialog === "mark" && <MarkDialog group={group} onClose={close} />}
      {(dialog === "requeue" || dialog === "discard") && (
        <RepairDialog
          action={dialog}
          selector={{ filter: { group_id: group.id, status: "open" } }}
          describe={texts.openOfGroup(group.title)}
          onClose={close}
        />
      )}
    </>
  );
}

function Sample({ id }: { id: string }) {
  const query = useQuery(deadLetter(id));
  return (
    <Panel
      title={texts.sample}
      aside={
        <Link href={`/dead-letters/${encodeURIComponent(id)}?view=messages&status=any`}>
          {texts.titleOf(id)}
        </Link>
      }
    >
      <Loaded query={query}>
        {({ error }) => (
          <>
            <p className={styles.message}>
              {error.message || <span className="quiet">{texts.noErrorMessage}</span>}
            </p>
            {error.traceback ? <Traceback text={error.traceback} /> : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Latest({ group }: { group: Group }) {
  const query = useQuery({
    ...deadLetters({ group_id: group.id, status: "any" }, "newest", undefined),
    refetchInterval: useFallbackInterval(),
  });
  const all = `/dead-letters?${new URLSearchParams({ view: "messages", status: "any", group_id: group.id })}`;
  return (
    <Panel title={texts.latestMessages} flush aside={<Link href={all}>{texts.allMessages}</Link>}>
      <Loaded query={query}>
        {({ items }) => (
          <Table
            folds
            label={texts.latestTable}
            head={[
              texts.deadLetterHeading,
              texts.status,
              texts.messageId,
              texts.version,
              texts.failedAtHeading,
            ]}
          >
            {items.slice(0, 10).map((deadLetter) => (
              <tr key={deadLetter.id} role="row">
                <th role="rowheader" scope="row">
                  <Link href={`/dead-letters/${encodeURIComponent(deadLetter.id)}?view=messages&status=any`}>
                    {deadLetter.id}
                  </Link>
                </th>
                <td role="cell">
                  <State of={deadLetter.status} />
                </td>
                <td role="cell">{deadLetter.message_id}</td>
                <td role="cell">{deadLetter.service_version}</td>
                <td role="cell">
                  <Ago at={deadLetter.failed_at} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}
