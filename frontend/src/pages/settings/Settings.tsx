import { Page } from "~/ui";

export default function Settings() {
  return <Page title="Settings">{null}</Page>;
}
