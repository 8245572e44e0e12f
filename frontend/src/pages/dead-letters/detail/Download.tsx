import { type DeadLetter, useDownload } from "~/api/dead-letter";
import { size } from "~/lib/format";
import * as common from "~/texts/common";
import * as texts from "~/texts/dead-letters";
import { announce, Button, Dialog, Problem } from "~/ui";

/** Asks before it saves the body as it is, because that is written down. */
export function Download({ letter, onClose }: { letter: DeadLetter; onClose(): void }) {
  const { mutate, isPending, error } = useDownload(letter.id);
  const download = () =>
    mutate(undefined, {
      onSuccess(body) {
        save(body, `dead-letter-${letter.id}${ending(letter.content_type)}`);
        announce(texts.bodySaved);
        onClose();
      },
    });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.downloadTitle}
      description={texts.downloadHint(size(letter.body.size))}
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

function ending(contentType: string | null): string {
  if (contentType?.includes("json")) return ".json";
  return contentType?.startsWith("text/plain") ? ".txt" : ".bin";
}
