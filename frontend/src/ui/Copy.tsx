import * as texts from "~/texts/ui";
import { announce } from "./announce";
import { Button, IconButton } from "./Button";

/** Copies a text, and says so. */
export async function copy(text: string, what = texts.copied): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(what);
  } catch {
    copyBySelection(text);
    announce(what);
  }
}

/** Pages that came over plain http have no clipboard of their own; a selection still can be copied. */
function copyBySelection(text: string): void {
  const field = document.createElement("textarea");
  field.value = text;
  field.setAttribute("readonly", "");
  field.className = "unseen";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function CopyButton({ text, label, children }: { text: string; label: string; children?: string }) {
  const act = () => void copy(text, texts.copiedWhat(label));
  if (children === undefined) return <IconButton icon="copy" label={label} onClick={act} />;
  return (
    <Button icon="copy" onClick={act}>
      {children}
    </Button>
  );
}
