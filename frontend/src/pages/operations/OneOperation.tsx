import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useConnection } from "~/api/live";
import { type Operation, operation } from "~/api/operations";
import { usePreferences } from "~/lib/preferences";
import { Ago, Facts, Icon, Loaded, Moment, Page, Panel, State } from "~/ui";
import { Deeds } from "./Deeds";
import { HowFar } from "./HowFar";
import { Items } from "./Items";
import styles from "./OneOperation.module.css";
import { isOpen, meantBy, optionsInWords, stateOf, titleOf } from "./words";

/** The stream tells of the latest operations only; one that goes on, or has messages without a result, is read this often. */
const EVERY = 3_000;

/** One operation: how far it is, what was asked for, and what came of each letter. */
export function OneOperation({ id }: { id: string }) {
  const rests = useConnection() === "resting";
  const query = useQuery({
    ...operation(id),
    refetchInterval: ({ state }) => (state.data && isOpen(state.data) && !rests ? EVERY : false),
  });
  const { data } = query;
  return (
    <Page
      title={data ? titleOf(data) : `Operation ${id}`}
      tab={data ? `Operation ${id}: ${stateOf(data)}` : `Operation ${id}`}
      beside={data && <State of={stateOf(data)} />}
      actions={data && <Deeds of={data} />}
    >
      <p>
        <Link href="/operations" className={styles.back ?? ""}>
          <Icon name="left" /> All operations
        </Link>
      </p>
      <Loaded query={query}>
        {(found) => (
          <>
            <HowFar of={found} />
            <Asked of={found} />
            <Items of={found} at={query.dataUpdatedAt} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Asked({ of }: { of: Operation }) {
  const options = optionsInWords(of);
  return (
    <Panel title="What was asked for">
      <Facts
        of={[
          ["Operation", of.id],
          ["Which", <Which key="which" of={of} />],
          ["How", options.length > 0 && options.map((sentence) => <p key={sentence}>{sentence}</p>)],
          ["Reason", of.reason],
          ["By", of.requested_by],
          [
            "Begun",
            <span key="begun">
              <Moment at={of.created_at} /> (<Ago at={of.created_at} />)
            </span>,
          ],
          ["Ended", of.finished_at && <Moment at={of.finished_at} />],
        ]}
      />
    </Panel>
  );
}

/** Which dead letters were meant; they were fixed when it began. */
function Which({ of }: { of: Operation }) {
  const { zone } = usePreferences();
  const meant = meantBy(of, zone);
  if (meant.kind === "filter")
    return (
      <>
        Dead letters {meant.phrases.join(", ") || "of any kind"}, as they were when it began.{" "}
        <Link href={meant.address}>Show them</Link>
      </>
    );
  const others = meant.count - meant.ids.length;
  return (
    <>
      {meant.ids.map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <Link href={`/dead-letters/${encodeURIComponent(id)}?status=any`}>{id}</Link>
        </span>
      ))}
      {others > 0 && ` and ${others} more`}
    </>
  );
}
