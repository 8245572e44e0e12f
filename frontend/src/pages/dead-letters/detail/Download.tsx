import { type DeadLetter, useDownload } from "~/api/dead-letter";
import { size } from "~/lib/format";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { announce, Button, Dialog, Problem } from "~/ui";

/** Asks before downloading the unmasked body, because that is written to the audit log. */
export function Download({ deadLetter, onClose }: { deadLetter: DeadLetter; onClose(): void }) {
  const { mutate, isPending, error } = useDownload(deadLetter.id);
  const download = () =>
    mutate(undefined, {
      onSuccess(body) {
        save(body, `dead-letter-${deadLetter.id}${extensionOf(deadLetter.content_type)}`);
        announce(texts.bodySaved);
        onClose();
      },
    });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.downloadTitle}
      description={texts.downloadHint(size(deadLetter.body.size))}
      actions={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button look="primary" icon="download" busy={isPending} onClick={download}>
            {texts.download}
          </Button>
        </>
      }
    >
      {error && <Problem of={error} />}
    </Dialog>
  );
}

function save(body: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(body);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function extensionOf(contentType: string | null): string {
  if (contentType?.includes("json")) return ".json";
  return contentType?.startsWith("text/plain") ? ".txt" : ".bin";
}
