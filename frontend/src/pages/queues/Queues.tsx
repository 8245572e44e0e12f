import { text, useUrlState } from "~/lib/url-state";
import { OneQueue } from "./OneQueue";
import { QueueTable } from "./QueueTable";

const PARAMETERS = { name: text };

/** All queues, or the one named in the URL. */
export default function Queues() {
  const [{ name }] = useUrlState(PARAMETERS);
  return name === undefined ? <QueueTable /> : <OneQueue key={name} name={name} />;
}
