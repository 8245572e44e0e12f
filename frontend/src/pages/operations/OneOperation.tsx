import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useGroupTitle } from "~/api/dead-letters";
import { useConnection } from "~/api/live";
import { type Operation, operation } from "~/api/operations";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/operations";
import { Ago, Facts, Loaded, Moment, Page, Panel, State } from "~/ui";
import { Actions } from "./Actions";
import { Items } from "./Items";
import { Progress } from "./Progress";
import { isOpen, optionSentences, selectionOf, stateOf, titleOf } from "./request";

/** Refetch interval of an operation that is active or waits for results. Live updates cover only the latest operations. Milliseconds. */
const INTERVAL = 3_000;

/** One operation: progress, request, and the outcome of each dead letter. */
export function OneOperation({ id }: { id: string }) {
  const isPaused = useConnection() === "idle";
  const query = useQuery({
    ...operation(id),
    refetchInterval: ({ state }) => (state.data && isOpen(state.data) && !isPaused ? INTERVAL : false),
  });
  const { data } = query;
  return (
    <Page
      title={data ? titleOf(data) : texts.titleOf(id)}
      tab={data ? texts.titleWithState(id, stateOf(data)) : texts.titleOf(id)}
      aside={
        <>
          {data && <State of={stateOf(data)} />}
          <Link href="/operations">{texts.allOperations}</Link>
        </>
      }
      actions={data && <Actions of={data} />}
    >
      <Loaded query={query}>
        {(found) => (
          <>
            <Progress of={found} />
            <Request of={found} />
            <Items of={found} at={query.dataUpdatedAt} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Request({ of }: { of: Operation }) {
  const options = optionSentences(of);
  return (
    <Panel title={texts.request}>
      <Facts
        of={[
          [texts.operation, of.id],
          [texts.selection, <SelectionText key="selection" of={of} />],
          [texts.options, options.length > 0 && options.map((sentence) => <p key={sentence}>{sentence}</p>)],
          [texts.reason, of.reason],
          [texts.startedBy, of.requested_by],
          [
            texts.started,
            <span key="begun">
              <Moment at={of.created_at} /> (<Ago at={of.created_at} />)
            </span>,
          ],
          [texts.ended, of.finished_at && <Moment at={of.finished_at} />],
        ]}
      />
    </Panel>
  );
}

/** The selected dead letters. The selection was fixed when the operation started. */
function SelectionText({ of }: { of: Operation }) {
  const { zone } = usePreferences();
  const group = of.selector.filter?.group_id;
  const selection = selectionOf(of, zone, useGroupTitle(group ?? undefined));
  if (selection.kind === "filter")
    return (
      <>
        {texts.selectionHint(selection.phrases.join(", ") || texts.anyDeadLetter)}{" "}
        <Link href={selection.address}>{texts.showSelection}</Link>
      </>
    );
  const others = selection.count - selection.ids.length;
  return (
    <>
      {selection.ids.map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <Link href={`/dead-letters/${encodeURIComponent(id)}?status=any`}>{id}</Link>
        </span>
      ))}
      {others > 0 && texts.andMore(others)}
    </>
  );
}
