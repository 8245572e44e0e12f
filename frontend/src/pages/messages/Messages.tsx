import { Page } from "~/ui";

export default function Messages() {
  return <Page title="Messages">{null}</Page>;
}
