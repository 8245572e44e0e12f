import { useMemo, useState } from "react";
import * as texts from "~/texts/dead-letters";
import { CopyButton, Icon, IconButton } from "~/ui";
import styles from "./Traceback.module.css";
import { type Fold, type Frame, folded, partsOf, shortPath } from "./traceback";

/** Where an error came from: the deepest frame of the program's own, and the others on request. */
export function Traceback({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const parts = useMemo(() => partsOf(text), [text]);
  const shown = useMemo(() => (whole ? parts : folded(parts)), [whole, parts]);
  const folds = folded(parts).some(({ kind }) => kind === "fold");
  return (
    <div className={styles.traceback}>
      <div className={styles.tools}>
        {folds && (
          <IconButton
            icon={whole ? "up" : "down"}
            label={whole ? texts.foldFrames : texts.unfoldFrames}
            aria-expanded={whole}
            onClick={() => setWhole(!whole)}
          />
        )}
        <CopyButton text={text} label={texts.copyTraceback} />
      </div>
      {shown.map((part, index) => {
        const key = `${part.kind} ${index}`;
        if (part.kind === "words") return <pre key={key}>{part.text}</pre>;
        return part.kind === "fold" ? <Folded key={key} fold={part} /> : <Shown key={key} frame={part} />;
      })}
    </div>
  );
}

function Folded({ fold: { frames } }: { fold: Fold }) {
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
        <Shown key={index} frame={frame} />
      ))}
    </details>
  );
}

function Shown({ frame: { path, line, name, code, own } }: { frame: Frame }) {
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
