import { Link } from "wouter";
import { type Alert, type AlertSettings, type AlertStatus, useAlerts, useSendTestAlert } from "~/api/alerts";
import { describeFailure } from "~/api/problems";
import { useWhyNot } from "~/api/session";
import { age } from "~/lib/format";
import { groupAddress, maybe, text, useUrlState } from "~/lib/url-state";
import { findingAddress } from "~/pages/overview/health";
import * as texts from "~/texts/alerts";
import {
  Ago,
  AsOf,
  announce,
  Badge,
  Button,
  Empty,
  Facts,
  Loaded,
  Loading,
  Page,
  Pager,
  Panel,
  Table,
  Tabs,
  type Tone,
} from "~/ui";
import styles from "./Alerts.module.css";

const STATUSES = ["open", "resolved"] as const;
const PARAMETERS = { status: maybe(STATUSES), cursor: text };
const TONES: Record<Alert["severity"], Tone> = { error: "bad", warning: "warn", info: "info" };

/** Alerts with their webhook deliveries, and the alert configuration. */
export default function Alerts() {
  const [{ status, cursor }, change] = useUrlState(PARAMETERS);
  const query = useAlerts(status, cursor);
  return (
    <Page title={texts.title} aside={query.data && <AsOf at={query.dataUpdatedAt} />}>
      <Tabs<AlertStatus | "all">
        label={texts.status}
        value={status ?? "all"}
        onChoose={(chosen) => change({ status: STATUSES.find((each) => each === chosen), cursor: undefined })}
        tabs={[
          { value: "all", label: texts.all },
          { value: "open", label: texts.open },
          { value: "resolved", label: texts.resolved },
        ]}
      >
        <Loaded query={query} loading={<Loading lines={6} />}>
          {({ items, next, previous, settings }) => (
            <div className={styles.page}>
              {items.length === 0 ? (
                <Empty title={settings ? texts.none : texts.notConfigured}>
                  {settings ? texts.noneHint : texts.notConfiguredHint}
                </Empty>
              ) : (
                <Panel title={texts.title} flush>
                  <Table
                    folds
                    label={texts.table}
                    head={[texts.alert, texts.severity, texts.sent, texts.over, texts.webhooks]}
                  >
                    {items.map((one) => (
                      <Row key={one.id} of={one} />
                    ))}
                  </Table>
                </Panel>
              )}
              <Pager
                shown={items.length}
                next={next}
                previous={previous}
                busy={query.isPlaceholderData}
                onPageChange={(to) => change({ cursor: to })}
              />
              {settings && <Configuration of={settings} />}
            </div>
          )}
        </Loaded>
      </Tabs>
    </Page>
  );
}

function Row({ of: one }: { of: Alert }) {
  return (
    <tr role="row">
      <th role="rowheader" scope="row" className={styles.what}>
        <Link href={addressOf(one)}>{one.summary.charAt(0).toUpperCase() + one.summary.slice(1)}</Link>
        <span className="quiet">{one.code}</span>
      </th>
      <td role="cell">
        <Badge tone={TONES[one.severity]}>{one.severity}</Badge>
      </td>
      <td role="cell" className={styles.when}>
        <Ago at={one.fired_at} />
      </td>
      <td role="cell" className={styles.when}>
        {one.resolved_at ? <Ago at={one.resolved_at} /> : texts.isOpen}
      </td>
      <td role="cell">
        <ul className={styles.deliveries}>
          {one.deliveries.map((each) => (
            <li key={`${each.event} ${each.target}`} title={each.last_error ?? undefined}>
              {each.target}: {outcomeOf(each)}
            </li>
          ))}
        </ul>
      </td>
    </tr>
  );
}

function outcomeOf({ sent_at, due_at, attempts, last_error }: Alert["deliveries"][number]): string {
  if (sent_at) return texts.isSent;
  if (due_at) return attempts > 0 ? texts.retries(attempts) : texts.waits;
  return `${texts.notSent}${last_error ? `: ${last_error}` : ""}`;
}

/** Returns the page that shows the subject of an alert. */
function addressOf({ code, subject_kind, subject }: Alert): string {
  if (code.startsWith("group_")) return groupAddress(subject);
  if (code === "operation_ended") return `/operations/${encodeURIComponent(subject)}`;
  return findingAddress({ code, subject_kind, subject });
}

function Configuration({ of: settings }: { of: AlertSettings }) {
  const whyNot = useWhyNot("repair");
  const test = useSendTestAlert();
  const send = () =>
    test.mutate(undefined, {
      onSuccess({ items }) {
        for (const { target, delivered, error } of items) {
          announce(
            delivered ? texts.delivered(target) : texts.rejected(target, error ?? ""),
            delivered ? "good" : "bad",
          );
        }
      },
      onError: (thrown) => announce(describeFailure(thrown), "bad"),
    });
  return (
    <Panel
      title={texts.configuration}
      aside={
        <Button icon="play" whyNot={whyNot} busy={test.isPending} onClick={send}>
          {texts.test}
        </Button>
      }
    >
      <Facts
        of={[
          [texts.webhooks, settings.targets.join(", ")],
          [texts.codes, settings.codes.join(", ")],
          [texts.after, age(settings.after_seconds)],
          [texts.above, texts.limit(settings.dead_letters_above)],
          [
            texts.quiet,
            settings.quiet &&
              texts.quietHours(settings.quiet.begins, settings.quiet.ends, settings.quiet.time_zone),
          ],
        ]}
      />
    </Panel>
  );
}
