// Commands that check or repair what a warning is about.

import * as texts from "~/texts/topology";

/** What running the commands of a warning would destroy, where one of them does. */
export function lossOf(code: string, broker: string): string | undefined {
  if (code !== "queue-without-consumer" && code !== "subscription-without-consumer") return undefined;
  return broker === "postgresql" ? texts.subscriptionLoss : texts.queueLoss;
}

/** Commands that resolve a warning, to copy; the harmless ones first. */
export function commandsFor(code: string, name: string, broker: string): readonly string[] {
  switch (code) {
    case "unroutable":
      return ["outbox messages --state held"];
    case "queue-without-consumer":
    case "subscription-without-consumer":
      return [
        "outbox components",
        broker === "postgresql"
          ? `DELETE FROM outbox_subscription WHERE queue = '${name.replaceAll("'", "''")}';`
          : `rabbitmqctl delete_queue --if-empty ${quoted(name)}`,
      ];
    case "old-binding":
      return ["rabbitmqctl list_bindings source_name routing_key destination_name"];
    case "dead-letters-vanish":
    case "queue-limit":
      return [
        "rabbitmqctl list_policies",
        `rabbitmqctl list_queues name arguments policy | grep -F ${quoted(name)}`,
      ];
    case "exchange-missing":
    case "queue-missing":
    case "retry-queue-missing":
    case "dead-letter-queue-missing":
      return ["outbox components", "outbox doctor"];
    default:
      return [];
  }
}

/** As one word of a shell. */
function quoted(word: string): string {
  return /^[\w.:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
