// Texts of the links that download a list.

export const exports = "Export";
export const hint = "Rows that match the current filter, at most 10,000.";
export const exportAs = (format: string) => `Export ${format}`;
export const csv = "CSV";
export const ndjson = "NDJSON";
