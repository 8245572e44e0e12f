import * as texts from "~/texts/ui";
import { announce } from "./announce";
import { Button, IconButton } from "./Button";

/** Copies a text to the clipboard and announces it. */
export async function copy(text: string, message = texts.copied): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(message);
  } catch {
    copyBySelection(text);
    announce(message);
  }
}

/** Fallback for pages served over plain http, which have no clipboard API. */
function copyBySelection(text: string): void {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.setAttribute("readonly", "");
  field.className = "unseen";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
}

export function CopyButton({ text, label, children }: { text: string; label: string; children?: string }) {
  const onClick = () => void copy(text, texts.copiedWhat(label));
  if (children === undefined) return <IconButton icon="copy" label={label} onClick={onClick} />;
  return (
    <Button icon="copy" onClick={onClick}>
      {children}
    </Button>
  );
}
