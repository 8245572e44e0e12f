import { Page } from "~/ui";

export default function Overview() {
  return <Page title="Overview">{null}</Page>;
}
