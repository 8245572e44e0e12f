import { describe, expect, it } from "vitest";
import { commandsFor, lossOf } from "./commands";

describe("commands for a warning", () => {
  it("quote the queue for the shell and for SQL", () => {
    expect(commandsFor("queue_without_consumer", "it's; rm", "rabbitmq")).toContain(
      "rabbitmqctl delete_queue --if-empty 'it'\\''s; rm'",
    );
    expect(commandsFor("subscription_without_consumer", "it's", "postgresql")).toContain(
      "DELETE FROM outbox_subscription WHERE queue = 'it''s';",
    );
    expect(commandsFor("queue_without_consumer", "orders.mail", "rabbitmq")).toContain(
      "rabbitmqctl delete_queue --if-empty orders.mail",
    );
  });

  it("warn about what they delete, if they do", () => {
    expect(lossOf("subscription_without_consumer", "postgresql")).toContain("ends the subscription");
    expect(lossOf("queue_without_consumer", "rabbitmq")).toContain("deletes the queue");
    expect(lossOf("unroutable", "rabbitmq")).toBeUndefined();
  });

  it("are empty for warnings of a later release", () => {
    expect(commandsFor("unknown_warning", "a", "rabbitmq")).toEqual([]);
  });
});
