import { Page } from "~/ui";

export default function Audit() {
  return <Page title="Audit">{null}</Page>;
}
