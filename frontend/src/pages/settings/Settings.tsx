import { useQuery } from "@tanstack/react-query";
import { type Permission, session } from "~/api/session";
import { useNow } from "~/lib/clock";
import { moment } from "~/lib/format";
import { type Preferences, prefer, usePreferences } from "~/lib/preferences";
import { Ago, Badge, Facts, Loaded, Page, Panel, Switch, useLiveWords } from "~/ui";
import { OneOf } from "./OneOf";
import styles from "./Settings.module.css";

const THEMES = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
] as const;
const ZONES = [
  ["local", "Local time"],
  ["utc", "UTC"],
] as const;
const DENSITIES = [
  ["comfortable", "Comfortable"],
  ["compact", "Compact"],
] as const;

/** What this browser shows and how, and who is looking. */
export default function Settings() {
  const chosen = usePreferences();
  return (
    <Page title="Settings">
      <Panel title="How it looks" aside="Kept in this browser">
        <div className={styles.settings}>
          <OneOf<Preferences["theme"]>
            label="Theme"
            value={chosen.theme}
            options={THEMES}
            onChoose={(theme) => prefer({ theme })}
          />
          <OneOf<Preferences["density"]>
            label="Density"
            value={chosen.density}
            options={DENSITIES}
            onChoose={(density) => prefer({ density })}
          />
          <OneOf<Preferences["zone"]>
            label="Times"
            hint={<Now zone={chosen.zone} />}
            value={chosen.zone}
            options={ZONES}
            onChoose={(zone) => prefer({ zone })}
          />
        </div>
      </Panel>
      <Live live={chosen.live} />
      <Who />
    </Page>
  );
}

function Now({ zone }: { zone: Preferences["zone"] }) {
  const name = zone === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <>
      It is {moment(new Date(useNow()).toISOString(), zone)}, {name}.
    </>
  );
}

function Live({ live }: { live: boolean }) {
  const { words, tone } = useLiveWords();
  return (
    <Panel title="Live refresh" aside={<Badge tone={tone}>{words}</Badge>}>
      <div className={styles.settings}>
        <Switch
          label="Show what happens while it happens"
          checked={live}
          onChange={(on) => prefer({ live: on })}
        />
        <p className={styles.quiet}>
          Rows stay in their places: what is new is told, and shown when you ask for it. It rests by itself in
          a hidden tab and while a dialog is open.
        </p>
      </div>
    </Panel>
  );
}

const DEEDS: readonly (readonly [Permission, string])[] = [
  ["repair", "Requeue, discard, restore and edit dead letters, run operations, note something"],
  ["pause", "Pause and resume relays, workers and queues"],
  ["reveal", "Reveal masked values, and download bodies"],
  ["read_audit", "Read the audit"],
  ["purge", "Delete dead letters for good"],
];

const WAYS = {
  session: "logged in with a token, in this browser",
  token: "a token with each request",
  host: "the application that this dashboard is part of",
} as const;

function Who() {
  const query = useQuery(session);
  return (
    <Panel title="You">
      <Loaded query={query}>
        {({ name, role, authenticated_by, expires_at, read_only, may }) => (
          <div className={styles.who}>
            <Facts
              of={[
                ["Name", name],
                ["Role", role],
                ["Known by", WAYS[authenticated_by]],
                ["Session ends", expires_at && <Ago at={expires_at} />],
              ]}
            />
            {read_only && (
              <p>This installation is read-only: nothing can be changed here, whatever the role.</p>
            )}
            <ul className={styles.deeds}>
              <li>
                <Badge tone="good">may</Badge> Look at everything
                {may.reveal ? "" : ", with values masked that are named like secrets"}
              </li>
              {DEEDS.map(([permission, words]) => (
                <li key={permission}>
                  {may[permission] ? <Badge tone="good">may</Badge> : <Badge icon="cross">may not</Badge>}{" "}
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
