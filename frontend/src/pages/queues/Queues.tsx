import { text, useUrlState } from "~/lib/url-state";
import { OneQueue } from "./OneQueue";
import { QueueTable } from "./QueueTable";

const PARAMETERS = { name: text };

/** Every queue, or the one that the address names. */
export default function Queues() {
  const [{ name }] = useUrlState(PARAMETERS);
  return name === undefined ? <QueueTable /> : <OneQueue key={name} name={name} />;
}
