import type { ReactNode } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import type { DeadLetter, useReveal } from "~/api/dead-letter";
import { isElsewhere } from "~/api/messages";
import { groupAddress } from "~/lib/url-state";
import * as texts from "~/texts/dead-letters";
import { Ago, CopyButton, Facts, Moment } from "~/ui";
import { externalFacts } from "~/ui/External";
import { Payload } from "~/ui/payload";
import { Editions } from "./Editions";
import { Headers } from "./Headers";
import { isMasked, Reveal } from "./Reveal";
import styles from "./Sections.module.css";
import { Timeline } from "./Timeline";
import { Traceback } from "./Traceback";

/** The details of a dead letter, most important first. */
export function Sections({
  deadLetter,
  reveal,
}: {
  deadLetter: DeadLetter;
  reveal: ReturnType<typeof useReveal>;
}) {
  const { body } = deadLetter;
  return (
    <>
      {deadLetter.error.traceback && (
        <Section title={texts.stackTrace}>
          <Traceback text={deadLetter.error.traceback} />
        </Section>
      )}
      <Section title={texts.payload}>
        <Payload
          of={body}
          label={texts.bodyOf(deadLetter.id)}
          actions={isMasked(deadLetter) && <Reveal deadLetter={deadLetter} reveal={reveal} />}
        />
      </Section>
      <Section title={texts.timeline}>
        <Timeline deadLetter={deadLetter} />
      </Section>
      <Section title={texts.details}>
        <Details deadLetter={deadLetter} />
      </Section>
      <Section title={texts.headers}>
        <Headers label={texts.headers} of={deadLetter.headers} types={deadLetter.header_types} />
      </Section>
      <Section title={texts.properties}>
        <Headers label={texts.properties} of={deadLetter.properties} />
      </Section>
      {deadLetter.editions.length > 0 && (
        <Section title={texts.earlierVersions}>
          <Editions deadLetter={deadLetter} />
        </Section>
      )}
      {deadLetter.operations.length > 0 && (
        <Section title={texts.operations}>
          <Operations deadLetter={deadLetter} />
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

function Details({ deadLetter }: { deadLetter: DeadLetter }) {
  const chain = deadLetter.root_id ?? deadLetter.message_id;
  return (
    <Facts
      of={[
        [texts.queue, deadLetter.queue],
        [texts.routingKey, deadLetter.routing_key],
        [texts.exchange, deadLetter.exchange],
        [texts.destination, isElsewhere(deadLetter.destination) && deadLetter.destination],
        [texts.message, deadLetter.message_id && <Id of={deadLetter.message_id} />],
        [texts.chain, chain && <Link href={chainAddress(chain)}>{texts.followChain}</Link>],
        [
          texts.similar,
          <Link key="group" href={groupAddress(deadLetter.group_id)}>
            {texts.showSimilar}
          </Link>,
        ],
        ...externalFacts(deadLetter),
        [texts.orderingKey, deadLetter.ordering_key],
        [texts.worker, deadLetter.worker],
        [texts.serviceVersion, deadLetter.service_version],
        [texts.failures, texts.failuresCount(deadLetter.failure_count, deadLetter.dead_letter_count)],
        [texts.requeued, texts.requeuedTimes(deadLetter.requeue_count)],
        [texts.published, <Moment key="created" at={deadLetter.created_at} milliseconds />],
        [texts.firstFailed, <Moment key="first" at={deadLetter.first_failed_at} milliseconds />],
        [texts.lastFailed, <Moment key="last" at={deadLetter.failed_at} milliseconds />],
        [texts.contentType, deadLetter.content_type],
        [texts.sequence, deadLetter.hlc],
        [texts.version, String(deadLetter.version)],
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

function Operations({ deadLetter }: { deadLetter: DeadLetter }) {
  return (
    <ul className={styles.operations}>
      {deadLetter.operations.map(({ id, action, outcome, reason: detail, settled_at }) => (
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
