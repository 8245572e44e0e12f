import { contentOf, type Message, type Reveal } from "~/api/messages";
import { useWhyNot } from "~/api/session";
import * as texts from "~/texts/messages";
import { Button, Problem } from "~/ui";
import { howToRead, Payload } from "~/ui/payload";
import styles from "./Detail.module.css";

/** The body, masked until revealed. */
export function Body({ message, reveal }: { message: Message; reveal: Reveal }) {
  const denied = useWhyNot("reveal");
  const shown = reveal.data ?? message;
  const content = contentOf(shown);
  const hides = content.masked && !reveal.data;
  const whyNot = content.access?.can_reveal === false ? howToRead(content.access) : denied;
  return (
    <section className={styles.part} aria-labelledby="body">
      <h3 id="body">{texts.body}</h3>
      {reveal.error && <Problem of={reveal.error} onRetry={() => reveal.mutate()} />}
      <Payload
        of={content}
        label={texts.bodyOf(message.id)}
        actions={
          (hides || reveal.data) && (
            <Button
              icon="eye"
              busy={reveal.isPending}
              whyNot={hides ? whyNot : undefined}
              onClick={() => (reveal.data ? reveal.reset() : reveal.mutate())}
            >
              {reveal.data ? texts.maskAgain : texts.reveal}
            </Button>
          )
        }
      />
    </section>
  );
}
