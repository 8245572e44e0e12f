import { type Letter, useDownload } from "~/api/dead-letter";
import { size } from "~/lib/format";
import { announce, Button, Dialog, Problem } from "~/ui";

/** Asks before it saves the body as it is, because that is written down. */
export function Download({ letter, onClose }: { letter: Letter; onClose(): void }) {
  const { mutate, isPending, error } = useDownload(letter.id);
  const download = () =>
    mutate(undefined, {
      onSuccess(body) {
        save(body, `dead-letter-${letter.id}${ending(letter.content_type)}`);
        announce("The body is saved.");
        onClose();
      },
    });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Download the body?"
      description={`All ${size(letter.body.size)} of it, with nothing masked. That you downloaded it is written to the audit, under your name.`}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" icon="download" busy={isPending} onClick={download}>
            Download
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
