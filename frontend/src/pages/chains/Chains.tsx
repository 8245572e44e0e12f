import { Page } from "~/ui";

export default function Chains() {
  return <Page title="Chains">{null}</Page>;
}
