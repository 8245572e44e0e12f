// Topology of exchanges, queues and workers, with warnings.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, type Schemas, unwrap } from "./client";
import { useInterval } from "./live";

export interface Node {
  id: string;
  kind: Schemas["TopologyNode"]["kind"];
  name: string;
  exists: boolean;
  /** Ready messages, excluding those in flight; undefined if unknown or not a queue. */
  queued: number | undefined;
  /** Messages waiting for their next attempt. */
  retrying: number | undefined;
  consumers: number | undefined;
}

export interface Edge {
  source: string;
  target: string;
  kind: Schemas["TopologyEdge"]["kind"];
  key: string | undefined;
}

export type Warning = Schemas["TopologyWarning"];

export interface Topology {
  asOf: string;
  broker: Schemas["BrokerKind"];
  brokerError: string | undefined;
  degraded: readonly string[];
  bindingsKnown: boolean;
  nodes: readonly Node[];
  edges: readonly Edge[];
  warnings: readonly Warning[];
}

const REFETCH_INTERVAL = 15_000;

export function useTopology() {
  return useQuery({
    queryKey: ["topology"] as const,
    queryFn: async ({ signal }) => toTopology(await unwrap(client.GET("/topology", { signal }))),
    placeholderData: keepPreviousData,
    refetchInterval: useInterval(REFETCH_INTERVAL),
  });
}

function toTopology(found: Schemas["Topology"]): Topology {
  return {
    asOf: found.as_of,
    broker: found.broker,
    brokerError: found.broker_error?.message,
    degraded: found.degraded,
    bindingsKnown: found.bindings_known,
    nodes: found.nodes.map(({ id, kind, name, exists, queued, retrying, consumer_count: consumers }) => ({
      id,
      kind,
      name,
      exists,
      queued: queued ?? undefined,
      retrying: retrying ?? undefined,
      consumers: consumers ?? undefined,
    })),
    edges: found.edges.map(({ source, target, kind, binding_key: key }) => ({
      source,
      target,
      kind,
      key: key ?? undefined,
    })),
    warnings: found.warnings,
  };
}
