import { Page } from "~/ui";

export default function Topology() {
  return <Page title="Topology">{null}</Page>;
}
