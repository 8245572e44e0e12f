import { describeTarget, type Pause, type Scope, type Target } from "~/api/pauses";
import { useWhyNot } from "~/api/session";
import * as texts from "~/texts/components";
import { Button } from "~/ui";

/** The current pauses, and callbacks that change them. */
export interface PauseActions {
  pauses: readonly Pause[];
  onPause(target: Target): void;
  onResume(pause: Pause): void;
}

/** Pauses a target, or resumes it if it is paused. */
export function PauseButton({
  target,
  pauses,
  onPause,
  onResume,
}: PauseActions & { target: { scope: Scope; name: string } }) {
  const whyNot = useWhyNot("pause");
  const paused = pauses.find(({ scope, name }) => scope === target.scope && name === target.name);
  return (
    <span>
      <Button
        icon={paused ? "play" : "pause"}
        whyNot={whyNot}
        aria-label={`${paused ? texts.resume : texts.pause} ${describeTarget(target)}`}
        onClick={() => (paused ? onResume(paused) : onPause(target))}
      >
        {paused ? texts.resume : texts.pause} {target.scope === "queue" ? "" : target.scope}
      </Button>
    </span>
  );
}
