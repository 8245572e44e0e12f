// All pages with their paths, names and shortcut keys. Each is loaded when it is first opened.

import { type ComponentType, lazy } from "react";
import * as texts from "~/texts/app";
import type { IconName } from "~/ui";

export interface PageEntry {
  /** Paths relative to the dashboard; a segment that starts with a colon is a parameter. */
  paths: readonly [string, ...string[]];
  name: string;
  icon: IconName;
  /** The second key after `g`. */
  key: string;
  page: ComponentType;
}

export const PAGES: readonly PageEntry[] = [
  {
    paths: ["/"],
    name: texts.overview,
    icon: "overview",
    key: "o",
    page: lazy(() => import("~/pages/overview/Overview")),
  },
  {
    paths: ["/search"],
    name: texts.search,
    icon: "search",
    key: "f",
    page: lazy(() => import("~/pages/search/Search")),
  },
  {
    paths: ["/queues"],
    name: texts.queues,
    icon: "queues",
    key: "q",
    page: lazy(() => import("~/pages/queues/Queues")),
  },
  {
    paths: ["/messages", "/messages/:id"],
    name: texts.messages,
    icon: "messages",
    key: "m",
    page: lazy(() => import("~/pages/messages/Messages")),
  },
  {
    paths: ["/dead-letters", "/dead-letters/groups/:group", "/dead-letters/:id"],
    name: texts.deadLetters,
    icon: "dead",
    key: "d",
    page: lazy(() => import("~/pages/dead-letters/DeadLetters")),
  },
  {
    paths: ["/operations", "/operations/:id"],
    name: texts.operations,
    icon: "operations",
    key: "p",
    page: lazy(() => import("~/pages/operations/Operations")),
  },
  {
    paths: ["/chains", "/chains/:id"],
    name: texts.chains,
    icon: "chains",
    key: "c",
    page: lazy(() => import("~/pages/chains/Chains")),
  },
  {
    paths: ["/components"],
    name: texts.components,
    icon: "components",
    key: "w",
    page: lazy(() => import("~/pages/components/Components")),
  },
  {
    paths: ["/topology"],
    name: texts.topology,
    icon: "topology",
    key: "t",
    page: lazy(() => import("~/pages/topology/Topology")),
  },
  {
    paths: ["/alerts"],
    name: texts.alerts,
    icon: "alerts",
    key: "e",
    page: lazy(() => import("~/pages/alerts/Alerts")),
  },
  {
    paths: ["/audit"],
    name: texts.audit,
    icon: "audit",
    key: "a",
    page: lazy(() => import("~/pages/audit/Audit")),
  },
  {
    paths: ["/settings"],
    name: texts.settings,
    icon: "settings",
    key: "s",
    page: lazy(() => import("~/pages/settings/Settings")),
  },
];
