import { useState } from "react";
import type { Message, Reveal } from "~/api/messages";
import { useWhyNot } from "~/api/session";
import { Changes } from "~/pages/waiting/Changes";
import * as texts from "~/texts/waiting";
import { Button } from "~/ui";
import { EditDialog } from "./EditDialog";

/** Actions on a message before it is sent. */
export function Actions({ message, reveal }: { message: Message; reveal: Reveal }) {
  const denied = useWhyNot("repair");
  const [editing, setEditing] = useState(false);
  const ended = whyEnded(message.state);
  const pending = message.state === "pending" ? texts.isDue : undefined;
  return (
    <Changes
      target={{ ids: [message.id] }}
      choices={[
        { action: "send_now", label: texts.sendNow, whyNot: ended ?? pending },
        { action: "reschedule", label: texts.reschedule, whyNot: ended },
        { action: "cancel", label: texts.cancel, whyNot: ended },
      ]}
    >
      <Button whyNot={denied ?? ended} onClick={() => setEditing(true)}>
        {texts.edit}
      </Button>
      {editing && <EditDialog message={message} reveal={reveal} onClose={() => setEditing(false)} />}
    </Changes>
  );
}

function whyEnded(state: Message["state"]): string | undefined {
  if (state === "sent") return texts.sentAlready;
  return state === "parked" ? texts.isParked : undefined;
}
