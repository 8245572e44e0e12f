export { FilterBar, type FilterBarProps } from "./FilterBar";
export type { Filter } from "./filters";
