import { useMemo, useState } from "react";
import * as texts from "~/texts/dead-letters";
import { CopyButton, Icon, IconButton } from "~/ui";
import styles from "./Traceback.module.css";
import { type Fold, type Frame, folded, partsOf, shortPath } from "./traceback";

/** A traceback. Shows the most relevant frame; the others can be expanded. */
export function Traceback({ text }: { text: string }) {
  const [expanded, setExpanded] = useState(false);
  const parts = useMemo(() => partsOf(text), [text]);
  const shown = useMemo(() => (expanded ? parts : folded(parts)), [expanded, parts]);
  const folds = folded(parts).some(({ kind }) => kind === "fold");
  return (
    <div className={styles.traceback}>
      <div className={styles.tools}>
        {folds && (
          <IconButton
            icon={expanded ? "up" : "down"}
            label={expanded ? texts.foldFrames : texts.unfoldFrames}
            aria-expanded={expanded}
            onClick={() => setExpanded(!expanded)}
          />
        )}
        <CopyButton text={text} label={texts.copyTraceback} />
      </div>
      {shown.map((part, index) => {
        const key = `${part.kind} ${index}`;
        if (part.kind === "words") return <pre key={key}>{part.text}</pre>;
        return part.kind === "fold" ? (
          <FoldedFrames key={key} fold={part} />
        ) : (
          <FrameView key={key} frame={part} />
        );
      })}
    </div>
  );
}

function FoldedFrames({ fold: { frames } }: { fold: Fold }) {
  const last = frames.at(-1);
  return (
    <details className={styles.fold}>
      <summary>
        <Icon name="right" />
        <span>
          {texts.moreFrames(frames.length)}
          {last && texts.framesTo(shortPath(last.path))}
        </span>
      </summary>
      {frames.map((frame, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: frames never move
        <FrameView key={index} frame={frame} />
      ))}
    </details>
  );
}

function FrameView({ frame: { path, line, name, code, own } }: { frame: Frame }) {
  return (
    <div className={styles.frame} data-own={own || undefined}>
      <p title={path}>
        <strong>{shortPath(path)}</strong>:{line}
        {name && <> {texts.inFunction(name)}</>}
      </p>
      {code.length > 0 && <pre>{code.join("\n")}</pre>}
    </div>
  );
}
