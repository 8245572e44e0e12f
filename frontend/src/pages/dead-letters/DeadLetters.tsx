import { Page } from "~/ui";

export default function DeadLetters() {
  return <Page title="Dead letters">{null}</Page>;
}
