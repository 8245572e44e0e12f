// Texts of the filters above lists.

export const invalid = "Invalid value.";
export const filters = "Filters";
export const activeFilters = "Active filters";
export const clearAll = "Clear all";
export const changeFilter = (label: string, value: string) => `${label}: ${value}. Change it`;
export const removeFilter = (label: string) => `Remove the filter ${label}`;
export const minutesAgo15 = "15 minutes ago";
export const hourAgo = "1 hour ago";
export const hoursAgo6 = "6 hours ago";
export const hoursAgo24 = "24 hours ago";
export const daysAgo7 = "7 days ago";
export const localTime = "local time";
export const timeHint =
  "Enter a time such as 17:30 or 2026-11-20 17:30, or an age such as 20 min, 3 h or 2 d.";
export const wholeHint = (least: number, most: number) => `Enter a whole number from ${least} to ${most}.`;
export const textHint = "Enter a value and press Enter.";
export const choiceHint = "Choose a value.";
