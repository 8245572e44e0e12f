import { useQuery } from "@tanstack/react-query";
import { type Permission, session } from "~/api/session";
import { useNow } from "~/lib/clock";
import { moment } from "~/lib/format";
import { type Preferences, setPreferences, usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/settings";
import { Ago, Badge, Facts, Loaded, Page, Panel, Switch, useLiveStatus } from "~/ui";
import { AccessList } from "./Access";
import { ChoiceGroup } from "./ChoiceGroup";
import styles from "./Settings.module.css";

const THEMES = [
  ["system", texts.system],
  ["light", texts.light],
  ["dark", texts.dark],
] as const;
const ZONES = [
  ["local", texts.localTime],
  ["utc", "UTC"],
] as const;
const DENSITIES = [
  ["comfortable", texts.comfortable],
  ["compact", texts.compact],
] as const;

/** Display settings of this browser, and the current user. */
export default function Settings() {
  const chosen = usePreferences();
  const { data } = useQuery(session);
  return (
    <Page title={texts.title}>
      <Panel title={texts.display} aside={texts.keptHere}>
        <div className={styles.settings}>
          <ChoiceGroup<Preferences["theme"]>
            label={texts.theme}
            value={chosen.theme}
            options={THEMES}
            onChoose={(theme) => setPreferences({ theme })}
          />
          <ChoiceGroup<Preferences["density"]>
            label={texts.density}
            value={chosen.density}
            options={DENSITIES}
            onChoose={(density) => setPreferences({ density })}
          />
          <ChoiceGroup<Preferences["zone"]>
            label={texts.times}
            hint={<Now zone={chosen.zone} />}
            value={chosen.zone}
            options={ZONES}
            onChoose={(zone) => setPreferences({ zone })}
          />
        </div>
      </Panel>
      <Live live={chosen.live} />
      <CurrentUser />
      {data?.role === "admin" && <AccessList />}
    </Page>
  );
}

function Now({ zone }: { zone: Preferences["zone"] }) {
  const name = zone === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
  return <>{texts.currentTime(moment(new Date(useNow()).toISOString(), zone), name)}</>;
}

function Live({ live }: { live: boolean }) {
  const { words, tone } = useLiveStatus();
  return (
    <Panel title={texts.liveUpdates} aside={<Badge tone={tone}>{words}</Badge>}>
      <div className={styles.settings}>
        <Switch
          label={texts.updateAutomatically}
          checked={live}
          onChange={(on) => setPreferences({ live: on })}
        />
        <p className={styles.quiet}>{texts.liveHint}</p>
      </div>
    </Panel>
  );
}

const ACTIONS: readonly (readonly [Permission, string])[] = [
  ["repair", texts.mayRepair],
  ["pause", texts.mayPause],
  ["reveal", texts.mayReveal],
  ["read_audit", texts.mayReadAudit],
  ["purge", texts.mayPurge],
];

const AUTHENTICATION = {
  session: texts.session,
  token: texts.token,
  host: texts.host,
} as const;

function CurrentUser() {
  const query = useQuery(session);
  return (
    <Panel title={texts.you}>
      <Loaded query={query}>
        {({ name, role, authenticated_by, expires_at, read_only, permissions }) => (
          <div className={styles.who}>
            <Facts
              of={[
                [texts.name, name],
                [texts.role, role],
                [texts.authenticatedBy, AUTHENTICATION[authenticated_by]],
                [texts.sessionEnds, expires_at && <Ago at={expires_at} />],
              ]}
            />
            {read_only && <p>{texts.readOnly}</p>}
            <ul className={styles.actions}>
              <li>
                <Badge tone="good">{texts.allowed}</Badge> {texts.mayView(!permissions.reveal)}
              </li>
              {ACTIONS.map(([permission, words]) => (
                <li key={permission}>
                  {permissions[permission] ? (
                    <Badge tone="good">{texts.allowed}</Badge>
                  ) : (
                    <Badge icon="cross">{texts.denied}</Badge>
                  )}{" "}
                  {words}
                </li>
              ))}
            </ul>
          </div>
        )}
      </Loaded>
    </Panel>
  );
}
