import { Badge } from "./Badge";
import { stateStyle } from "./states";

/** Badge for a state, given by its API value. */
export function State({ of }: { of: string }) {
  const { label, tone, icon } = stateStyle(of);
  return (
    <Badge tone={tone} {...(icon ? { icon } : {})}>
      {label}
    </Badge>
  );
}
