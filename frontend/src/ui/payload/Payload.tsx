import { type ReactNode, useMemo, useState } from "react";
import type { Schemas } from "~/api/client";
import { size as sizeText } from "~/lib/format";
import { tryReadJson } from "~/lib/json";
import * as texts from "~/texts/payload";
import { CopyButton } from "../Copy";
import { Checkbox } from "../fields";
import { Empty } from "../Loaded";
import { type Tab, Tabs } from "../Tabs";
import { howKept, howToRead, isUnreadable } from "./access";
import { bytesOfBase64, bytesOfText } from "./bytes";
import { Hex } from "./Hex";
import styles from "./payload.module.css";
import { Raw } from "./Raw";
import { Tree } from "./Tree";

type Content = Schemas["Content"];

export interface PayloadProps {
  of: Content;
  /** Accessible name: "Body of message 17". */
  label?: string;
  /** Buttons next to the views: reveal, download. */
  actions?: ReactNode;
}

type View = "tree" | "raw" | "hex";

const VIEWS: readonly Tab<View>[] = [
  { value: "tree", label: texts.tree },
  { value: "raw", label: texts.raw },
  { value: "hex", label: texts.hex },
];

/** A message body as a tree if it is JSON, as raw text, or as a hex dump. Content is always rendered as text, never as HTML. */
export function Payload({ of, label = texts.body, actions }: PayloadProps) {
  const { content, encoding } = of;
  const root = useMemo(
    () => (encoding === "json" && content !== null ? tryReadJson(content) : undefined),
    [content, encoding],
  );
  const views = VIEWS.filter(
    ({ value }) => value === "hex" || (value === "tree" ? root : encoding !== "base64"),
  );
  // What cannot be decrypted is not shown as bytes.
  const unread = of.access && (content === null || isUnreadable(of.access));
  const hasContent = !unread && content !== null && content !== "";
  const [wanted, setView] = useState<View>();
  const [wrap, setWrap] = useState(true);
  const view = views.find(({ value }) => value === wanted)?.value ?? views[0]?.value ?? "hex";
  return (
    <div className={styles.payload}>
      <div className={styles.facts}>
        <span className={styles.about}>
          {of.content_type ?? texts.noContentType} · {sizeText(of.size)}
        </span>
        <span className={styles.actions}>
          {view === "raw" && hasContent && (
            <Checkbox label={texts.wrapLines} checked={wrap} onChange={setWrap} />
          )}
          {hasContent && (
            <CopyButton text={content} label={encoding === "base64" ? texts.copyBase64 : texts.copyShown} />
          )}
          {actions}
        </span>
      </div>
      <Notes {...of} />
      {!hasContent ? (
        <NoContent {...of} />
      ) : (
        <Tabs<View> label={texts.viewOf(label)} tabs={views} value={view} onChoose={setView}>
          {view === "tree" && root && <Tree key={content} root={root} label={label} />}
          {view === "raw" && <Raw text={content} wrap={wrap} label={label} />}
          {view === "hex" && <Bytes content={content} base64={encoding === "base64"} label={label} />}
        </Tabs>
      )}
    </div>
  );
}

function Bytes({ content, base64, label }: { content: string; base64: boolean; label: string }) {
  const bytes = useMemo(() => (base64 ? bytesOfBase64(content) : bytesOfText(content)), [content, base64]);
  return <Hex bytes={bytes} label={label} />;
}

function Notes({ content, size, truncated, masked }: Content) {
  return (
    <>
      {truncated && content !== null && <p className={styles.note}>{texts.truncated(sizeText(size))}</p>}
      {masked && content !== null && <p className={styles.note}>{texts.maskedHint}</p>}
    </>
  );
}

function NoContent({ content, size, masked, access }: Content) {
  if (access) return <Empty title={howKept(access)}>{howToRead(access)}</Empty>;
  if (content === "" || size === 0) return <Empty title={texts.emptyBody} />;
  return <Empty title={texts.hiddenBody}>{masked ? texts.hiddenHint : texts.notDisplayable}</Empty>;
}
