import { Page } from "~/ui";

export default function Components() {
  return <Page title="Components">{null}</Page>;
}
