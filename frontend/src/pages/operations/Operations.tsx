import { Page } from "~/ui";

export default function Operations() {
  return <Page title="Operations">{null}</Page>;
}
