import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { addressOf, type SearchResult, useSearchResults } from "~/api/search";
import { text, useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/search";
import { Badge, Empty, Loaded, Loading, Page, TextField } from "~/ui";
import styles from "./Search.module.css";

const PARAMETERS = { q: text };
const DEBOUNCE = 250;

/** Search over all kinds of objects. Enter opens the first result. */
export default function Search() {
  const [{ q = "" }, change] = useUrlState(PARAMETERS);
  const [typed, setTyped] = useState(q);
  const [shown, setShown] = useState(q);
  // Another address, such as that of the shortcut or of the way back, replaces the text.
  if (q !== shown) {
    setShown(q);
    setTyped(q);
  }
  const query = useSearchResults(q.trim());
  const [, navigate] = useLocation();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  useEffect(() => {
    const timer = setTimeout(() => change({ q: typed || undefined }, { replace: true }), DEBOUNCE);
    return () => clearTimeout(timer);
  }, [typed, change]);
  const first = typed === q && !query.isPlaceholderData ? query.data?.items[0] : undefined;
  return (
    <Page title={texts.title}>
      <form
        ref={form}
        className={styles.field}
        onSubmit={(event) => {
          event.preventDefault();
          if (first) navigate(addressOf(first));
        }}
      >
        <TextField
          label={texts.field}
          hint={texts.hint}
          type="search"
          autoComplete="off"
          data-arrival
          spellCheck={false}
          maxLength={300}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </form>
      {q.trim() !== "" && (
        <Loaded query={query} loading={<Loading lines={3} />}>
          {({ items, incomplete }) => (
            <>
              {incomplete.length > 0 && (
                <p className="quiet">
                  {texts.incomplete(incomplete.map((kind) => texts.kinds[kind]).join(", "))}
                </p>
              )}
              {items.length === 0 ? (
                <Empty title={texts.nothing(q)}>{texts.nothingHint}</Empty>
              ) : (
                <ul className={styles.results} aria-label={texts.results}>
                  {items.map((item) => (
                    <Row key={`${item.kind} ${item.id}`} of={item} />
                  ))}
                </ul>
              )}
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

function Row({ of }: { of: SearchResult }) {
  return (
    <li>
      <Badge tone="neutral">{texts.kinds[of.kind]}</Badge>
      <Link href={addressOf(of)}>{of.title}</Link>
      <span className="quiet">
        {[of.id === of.title ? "" : of.id, of.queue, of.detail].filter(Boolean).join(" · ")}
      </span>
    </li>
  );
}
