import type { ReactNode } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import type { DeadLetter, useReveal } from "~/api/dead-letter";
import { groupAddress } from "~/lib/url-state";
import * as texts from "~/texts/dead-letters";
import { external } from "~/texts/external";
import { Ago, CopyButton, Facts, Moment } from "~/ui";
import { External, hasLinks } from "~/ui/External";
import { Payload } from "~/ui/payload";
import { Editions } from "./Editions";
import { Headers } from "./Headers";
import { isMasked, Reveal } from "./Reveal";
import styles from "./Sections.module.css";
import { Timeline } from "./Timeline";
import { Traceback } from "./Traceback";

/** Everything about one letter, what is needed first on top. */
export function Sections({ letter, reveal }: { letter: DeadLetter; reveal: ReturnType<typeof useReveal> }) {
  const { body } = letter;
  return (
    <>
      {letter.error.traceback && (
        <Section title={texts.stackTrace}>
          <Traceback text={letter.error.traceback} />
        </Section>
      )}
      <Section title={texts.payload}>
        <Payload
          of={body}
          label={texts.bodyOf(letter.id)}
          actions={isMasked(letter) && <Reveal letter={letter} reveal={reveal} />}
        />
      </Section>
      <Section title={texts.timeline}>
        <Timeline letter={letter} />
      </Section>
      <Section title={texts.details}>
        <About letter={letter} />
      </Section>
      <Section title={texts.headers}>
        <Headers label={texts.headers} of={letter.headers} types={letter.header_types} />
      </Section>
      <Section title={texts.properties}>
        <Headers label={texts.properties} of={letter.properties} />
      </Section>
      {letter.editions.length > 0 && (
        <Section title={texts.earlierVersions}>
          <Editions letter={letter} />
        </Section>
      )}
      {letter.operations.length > 0 && (
        <Section title={texts.operations}>
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

function About({ letter }: { letter: DeadLetter }) {
  const chain = letter.root_id ?? letter.message_id;
  return (
    <Facts
      of={[
        [texts.queue, letter.queue],
        [texts.routingKey, letter.routing_key],
        [texts.exchange, letter.exchange],
        [texts.message, letter.message_id && <Id of={letter.message_id} />],
        [texts.chain, chain && <Link href={chainAddress(chain)}>{texts.followChain}</Link>],
        [
          texts.similar,
          <Link key="group" href={groupAddress(letter.group_id)}>
            {texts.showSimilar}
          </Link>,
        ],
        [external, hasLinks(letter.external) && <External key="external" of={letter.external} />],
        [texts.orderingKey, letter.ordering_key],
        [texts.worker, letter.worker],
        [texts.serviceVersion, letter.service_version],
        [texts.failures, texts.failuresCount(letter.failure_count, letter.dead_letter_count)],
        [texts.requeued, texts.requeuedTimes(letter.requeue_count)],
        [texts.published, <Moment key="created" at={letter.created_at} milliseconds />],
        [texts.firstFailed, <Moment key="first" at={letter.first_failed_at} milliseconds />],
        [texts.lastFailed, <Moment key="last" at={letter.failed_at} milliseconds />],
        [texts.contentType, letter.content_type],
        [texts.sequence, letter.hlc],
        [texts.version, String(letter.version)],
      ]}
    />
  );
}

function Id({ of }: { of: string }) {
  return (
    <span className={styles.id}>
      <code>{of}</code> <CopyButton text={of} label={texts.copyMessageId} />
    </span>
  );
}

function Operations({ letter }: { letter: DeadLetter }) {
  return (
    <ul className={styles.operations}>
      {letter.operations.map(({ id, action, outcome, reason: detail, settled_at }) => (
        <li key={id}>
          <Link href={`/operations/${id}`}>{texts.operation(id)}</Link> ({action}): {outcome}
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
