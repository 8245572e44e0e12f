// Texts of the search page.

export const title = "Search";
export const field = "ID, number, queue, handler, routing key or words of an error";
export const hint = "Finds IDs in the outbox, in PostgreSQL queues, in the history and among dead letters.";
export const nothing = (q: string) => `No results for “${q}”.`;
export const nothingHint =
  "IDs must be complete. Errors match by whole words, names by any part. The history may not go back far enough.";
export const results = "Results";
export const kinds = {
  message: "Message",
  delivery: "Delivery",
  dead_letter: "Dead letter",
  chain: "Chain",
  queue: "Queue",
  routing_key: "Routing key",
  component: "Component",
};
export const incomplete = (names: string) =>
  `Not searched, because it took too long or is unavailable: ${names}.`;
