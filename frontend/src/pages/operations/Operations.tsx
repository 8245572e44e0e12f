import { useRoute } from "wouter";
import { OneOperation } from "./OneOperation";
import { OperationList } from "./OperationList";

/** The list of operations, or one operation. */
export default function Operations() {
  const [, one] = useRoute("/operations/:id");
  return one?.id ? <OneOperation key={one.id} id={one.id} /> : <OperationList />;
}
