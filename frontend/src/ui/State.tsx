import { Badge } from "./Badge";
import { stateStyle } from "./states";

/** The badge of a state by its name in the API. */
export function State({ of }: { of: string }) {
  const { label, tone, icon } = stateStyle(of);
  return (
    <Badge tone={tone} {...(icon ? { icon } : {})}>
      {label}
    </Badge>
  );
}
