import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { chainAddress } from "~/api/chains";
import { useFallbackInterval } from "~/api/live";
import { type Message, message, useReveal } from "~/api/messages";
import { toFailure } from "~/api/problems";
import { useShortcuts } from "~/lib/keyboard";
import * as texts from "~/texts/messages";
import { Button, CopyButton, Empty, IconButton, Loaded, Loading, State } from "~/ui";
import { Actions } from "./Actions";
import { Body } from "./Body";
import { Deliveries } from "./Deliveries";
import styles from "./Detail.module.css";
import { Details } from "./Details";
import { Headers } from "./Headers";
import { Status } from "./Status";

interface Navigation {
  /** IDs of the neighbours in the list. */
  before: string | undefined;
  after: string | undefined;
  onGo(id: string): void;
  onClose(): void;
}

/** One message: its status first, then all other details. */
export function Detail({ id, ...navigation }: Navigation & { id: string }) {
  const query = useQuery({ ...message(id), refetchInterval: useFallbackInterval() });
  useShortcuts(texts.message, [{ keys: "Escape", label: texts.close, run: navigation.onClose }]);
  const gone = query.error && toFailure(query.error).code === "not_found";
  return (
    <article className={styles.detail} aria-label={texts.titleOf(id)}>
      <Head id={id} message={query.data} {...navigation} />
      {gone ? (
        <NotFound id={id} message={query.data} />
      ) : (
        <Loaded query={query} loading={<Loading lines={8} />}>
          {(found) => <Parts message={found} />}
        </Loaded>
      )}
    </article>
  );
}

function Parts({ message }: { message: Message }) {
  const reveal = useReveal(message);
  return (
    <>
      <Status message={message} />
      <Actions message={message} reveal={reveal} />
      <Details message={message} />
      <Deliveries message={message} />
      <Body message={message} reveal={reveal} />
      <Headers message={reveal.data ?? message} />
    </>
  );
}

/** The heading. Takes focus on narrow screens, where the list is hidden. */
function Head({
  id,
  message,
  before,
  after,
  onGo,
  onClose,
}: Navigation & { id: string; message: Message | undefined }) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (window.matchMedia(NARROW).matches) title.current?.focus();
  }, []);
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <h2 ref={title} tabIndex={-1}>
          {message?.routing_key ?? texts.titleOf(id)}
        </h2>
        {message && <State of={message.state} />}
        <span className={styles.id}>
          {message && texts.titleOf(id)} <CopyButton text={id} label={texts.copyNumber} />
        </span>
      </div>
      <div className={styles.leave}>
        <span className={styles.back}>
          <Button look="quiet" icon="left" onClick={onClose}>
            {texts.back}
          </Button>
        </span>
        <IconButton
          icon="up"
          label={texts.previous}
          whyNot={before ? undefined : texts.firstOfPage}
          onClick={() => before && onGo(before)}
        />
        <IconButton
          icon="down"
          label={texts.next}
          whyNot={after ? undefined : texts.lastOfPage}
          onClick={() => after && onGo(after)}
        />
        <span className={styles.close}>
          <IconButton icon="cross" label={texts.close} onClick={onClose} />
        </span>
      </div>
    </header>
  );
}

const NARROW = "(max-width: 1100px)";

function NotFound({ id, message }: { id: string; message: Message | undefined }) {
  const known = message?.message_id ?? message?.root_id;
  return (
    <Empty title={texts.notInOutbox(id)}>
      {texts.notInOutboxHint}{" "}
      {known ? (
        <Link href={chainAddress(known)}>{texts.seeChain}</Link>
      ) : (
        <Link href="/chains">{texts.seeChainById}</Link>
      )}
    </Empty>
  );
}
