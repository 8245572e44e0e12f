// Charts of what happened over time.

export type { Line, Marker, Steps } from "./lines";
export {
  type Between,
  brushed,
  periodOf,
  type Range,
  rangeOf,
  rangeParameters,
  valuesOf,
} from "./range";
export { Sparkline } from "./Sparkline";
export { TimeChart } from "./TimeChart";
export { TimeRange } from "./TimeRange";
