// Charts over time.

export { depthLines } from "./depth";
export { type Chart, History } from "./History";
export type { Line, Marker } from "./lines";
export { type AbsoluteRange, periodOf, type Range, rangeParameters } from "./range";
export { Sparkline } from "./Sparkline";
