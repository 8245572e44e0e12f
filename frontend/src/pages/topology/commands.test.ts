import { describe, expect, it } from "vitest";
import { commandsFor, lossOf } from "./commands";

describe("commands that repair", () => {
  it("name the queue so that a shell and a database take it as one word", () => {
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

  it("say what they destroy, and only where they do", () => {
    expect(lossOf("subscription_without_consumer", "postgresql")).toContain("ends the subscription");
    expect(lossOf("queue_without_consumer", "rabbitmq")).toContain("deletes the queue");
    expect(lossOf("unroutable", "rabbitmq")).toBeUndefined();
  });

  it("are none for what a later release warns of", () => {
    expect(commandsFor("moon-in-the-way", "a", "rabbitmq")).toEqual([]);
  });
});
