import { Badge } from "./Badge";
import { lookOf } from "./states";

/** The badge of a state by its name in the API. */
export function State({ of }: { of: string }) {
  const { label, tone, icon } = lookOf(of);
  return (
    <Badge tone={tone} {...(icon ? { icon } : {})}>
      {label}
    </Badge>
  );
}
