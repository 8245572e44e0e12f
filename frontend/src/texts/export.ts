// Texts of the links that download a list.

export const exports = "Export";
export const hint = "What matches the current filter, at most 10,000 rows.";
export const exportAs = (format: string) => `Export ${format}`;
export const csv = "CSV";
export const ndjson = "NDJSON";
