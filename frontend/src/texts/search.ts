// Texts of the search for everything.

export const title = "Search";
export const field = "ID, number, queue, handler, routing key or words of an error";
export const hint =
  "Ids are found in the outbox, in queues of the database, in the history and among dead letters.";
export const nothing = (q: string) => `Nothing was found for “${q}”.`;
export const nothingHint =
  "Ids have to be complete. Errors are found by whole words, names by any part. The history may not go back that far.";
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
