import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import { useFallbackInterval } from "~/api/live";
import { type Message, message, useReveal } from "~/api/messages";
import { failureOf } from "~/api/problems";
import { useShortcuts } from "~/lib/keyboard";
import { Button, CopyButton, Empty, IconButton, Loaded, Loading, State } from "~/ui";
import { About } from "./About";
import { Body } from "./Body";
import styles from "./Detail.module.css";
import { Handled } from "./Handled";
import { Headers } from "./Headers";
import { Why } from "./Why";

interface Around {
  /** The messages next to it in the list. */
  before: string | undefined;
  after: string | undefined;
  onGo(id: string): void;
  onClose(): void;
}

/** One message: why it is where it is first, then everything else about it. */
export function Detail({ id, ...around }: Around & { id: string }) {
  const query = useQuery({ ...message(id), refetchInterval: useFallbackInterval() });
  useShortcuts("Message", [{ keys: "Escape", label: "Close the message", run: around.onClose }]);
  const gone = query.error && failureOf(query.error).code === "not-found";
  return (
    <article className={styles.detail} aria-label={`Message ${id}`}>
      <Head id={id} message={query.data} {...around} />
      {gone ? (
        <Gone id={id} message={query.data} />
      ) : (
        <Loaded query={query} loading={<Loading lines={8} />}>
          {(found) => <Parts message={found} />}
        </Loaded>
      )}
    </article>
  );
}

function Parts({ message }: { message: Message }) {
  const reveal = useReveal(message.id);
  return (
    <>
      <Why message={message} />
      <About message={message} />
      <Handled message={message} />
      <Body message={message} reveal={reveal} />
      <Headers message={reveal.data ?? message} />
    </>
  );
}

/** Takes focus when it opens on a narrow screen, where the list is away. */
function Head({
  id,
  message,
  before,
  after,
  onGo,
  onClose,
}: Around & { id: string; message: Message | undefined }) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (window.matchMedia(NARROW).matches) title.current?.focus();
  }, []);
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <h2 ref={title} tabIndex={-1}>
          {message?.routing_key ?? `Message ${id}`}
        </h2>
        {message && <State of={message.state} />}
        <span className={styles.id}>
          {message && `Message ${id}`} <CopyButton text={id} label="Copy the message's number" />
        </span>
      </div>
      <div className={styles.leave}>
        <span className={styles.back}>
          <Button look="quiet" icon="left" onClick={onClose}>
            Back to the list
          </Button>
        </span>
        <IconButton
          icon="up"
          label="Previous message"
          whyNot={before ? undefined : "It is the first one on this page of the list."}
          onClick={() => before && onGo(before)}
        />
        <IconButton
          icon="down"
          label="Next message"
          whyNot={after ? undefined : "It is the last one on this page of the list."}
          onClick={() => after && onGo(after)}
        />
        <span className={styles.close}>
          <IconButton icon="cross" label="Close the message" onClick={onClose} />
        </span>
      </div>
    </header>
  );
}

const NARROW = "(max-width: 1100px)";

function Gone({ id, message }: { id: string; message: Message | undefined }) {
  const known = message?.message_id ?? message?.root_id;
  return (
    <Empty title={`Message ${id} is not in the outbox any more.`}>
      What was sent is deleted after a while.{" "}
      {known ? (
        <Link href={chainAddress(known)}>Its chain may still know it.</Link>
      ) : (
        <Link href="/chains">Its chain may still know it, by any of its ids.</Link>
      )}
    </Empty>
  );
}
