import { useBacklog } from "~/api/backlog";
import { useLiveComponents } from "~/api/overview";
import * as texts from "~/texts/overview";
import { Loaded, Loading, Page } from "~/ui";
import { Banners } from "./Banners";
import { Charts } from "./Charts";
import { Destinations } from "./Destinations";
import { FailureGroups } from "./FailureGroups";
import styles from "./Overview.module.css";
import { RunningOperations } from "./RunningOperations";
import { Tiles } from "./Tiles";
import { Verdict } from "./Verdict";

export default function Overview() {
  const backlog = useBacklog();
  const components = useLiveComponents();
  return (
    <Page title={texts.title}>
      <Banners backlog={backlog.data} pauses={components.data?.pauses} />
      <Loaded query={backlog} loading={<Loading lines={4} />}>
        {(now) => (
          <>
            <Verdict backlog={now} components={components.data} />
            <Tiles backlog={now} components={components} />
            <Destinations backlog={now} />
          </>
        )}
      </Loaded>
      <Charts />
      <div className={styles.lower}>
        <FailureGroups />
        <RunningOperations />
      </div>
    </Page>
  );
}
