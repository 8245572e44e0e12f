// Commands that check or resolve a warning.

import * as texts from "~/texts/topology";

/** Returns what the commands for a warning would delete, if anything. */
export function lossOf(code: string, broker: string): string | undefined {
  if (code !== "queue_without_consumer" && code !== "subscription_without_consumer") return undefined;
  return broker === "postgresql" ? texts.subscriptionLoss : texts.queueLoss;
}

/** Returns commands to copy that resolve a warning, harmless ones first. */
export function commandsFor(code: string, name: string, broker: string): readonly string[] {
  switch (code) {
    case "unroutable":
      return ["outbox messages --state held"];
    case "queue_without_consumer":
    case "subscription_without_consumer":
      return [
        "outbox components",
        broker === "postgresql"
          ? `DELETE FROM outbox_subscription WHERE queue = '${name.replaceAll("'", "''")}';`
          : `rabbitmqctl delete_queue --if-empty ${quoted(name)}`,
      ];
    case "old_binding":
      return ["rabbitmqctl list_bindings source_name routing_key destination_name"];
    case "dead_letters_vanish":
    case "queue_limit":
      return [
        "rabbitmqctl list_policies",
        `rabbitmqctl list_queues name arguments policy | grep -F ${quoted(name)}`,
      ];
    case "exchange_missing":
    case "queue_missing":
    case "retry_queue_missing":
    case "dead_letter_queue_missing":
      return ["outbox components", "outbox doctor"];
    default:
      return [];
  }
}

/** Quotes a text as one shell word. */
function quoted(word: string): string {
  return /^[\w.:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
