import type { ReactNode } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import type { Letter, useReveal } from "~/api/dead-letter";
import { plural } from "~/lib/format";
import { Ago, CopyButton, Facts, Moment } from "~/ui";
import { Payload } from "~/ui/payload";
import { Editions } from "./Editions";
import { Headers } from "./Headers";
import { isMasked, Reveal } from "./Reveal";
import styles from "./Sections.module.css";
import { Timeline } from "./Timeline";
import { Traceback } from "./Traceback";

/** Everything about one letter, what is needed first on top. */
export function Sections({ letter, reveal }: { letter: Letter; reveal: ReturnType<typeof useReveal> }) {
  const { body } = letter;
  return (
    <>
      {letter.error.traceback && (
        <Section title="Where the error came from">
          <Traceback text={letter.error.traceback} />
        </Section>
      )}
      <Section title="Payload">
        <Payload
          of={body}
          label={`Body of dead letter ${letter.id}`}
          actions={isMasked(letter) && <Reveal letter={letter} reveal={reveal} />}
        />
      </Section>
      <Section title="What happened">
        <Timeline letter={letter} />
      </Section>
      <Section title="Where it is from">
        <About letter={letter} />
      </Section>
      <Section title="Headers">
        <Headers label="Headers" of={letter.headers} types={letter.header_types} />
      </Section>
      <Section title="Properties">
        <Headers label="Properties" of={letter.properties} />
      </Section>
      {letter.editions.length > 0 && (
        <Section title="Earlier editions">
          <Editions letter={letter} />
        </Section>
      )}
      {letter.operations.length > 0 && (
        <Section title="Operations">
          <Operations letter={letter} />
        </Section>
      )}
    </>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function About({ letter }: { letter: Letter }) {
  const chain = letter.root_id ?? letter.message_id;
  return (
    <Facts
      of={[
        ["Queue", letter.queue],
        ["Routing key", letter.routing_key],
        ["Exchange", letter.exchange],
        ["Message", letter.message_id && <Id of={letter.message_id} />],
        ["Chain", chain && <Link href={chainAddress(chain)}>Follow its chain</Link>],
        [
          "Alike",
          <Link key="group" href={`/dead-letters?group_id=${letter.group_id}`}>
            Others that failed like it
          </Link>,
        ],
        ["Ordering key", letter.ordering_key],
        ["Worker", letter.worker],
        ["Failures", `${plural(letter.failures, "failure")}, ${plural(letter.deaths, "death")}`],
        ["Requeued", letter.requeue_count === 0 ? "never" : plural(letter.requeue_count, "time")],
        ["Written", <Moment key="created" at={letter.created_at} milliseconds />],
        ["First failed", <Moment key="first" at={letter.first_failed_at} milliseconds />],
        ["Failed last", <Moment key="last" at={letter.failed_at} milliseconds />],
        ["Content type", letter.content_type],
        ["Place in the order of events", letter.hlc],
        ["Version", String(letter.version)],
      ]}
    />
  );
}

function Id({ of }: { of: string }) {
  return (
    <span className={styles.id}>
      <code>{of}</code> <CopyButton text={of} label="Copy the message's id" />
    </span>
  );
}

function Operations({ letter }: { letter: Letter }) {
  return (
    <ul className={styles.operations}>
      {letter.operations.map(({ id, action, outcome, detail, settled_at }) => (
        <li key={id}>
          <Link href={`/operations/${id}`}>Operation {id}</Link> ({action}): {outcome}
          {settled_at !== null && (
            <>
              {" "}
              <Ago at={settled_at} />
            </>
          )}
          {detail && <span className={styles.quiet}>. {detail}</span>}
        </li>
      ))}
    </ul>
  );
}
