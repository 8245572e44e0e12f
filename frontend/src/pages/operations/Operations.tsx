import { useRoute } from "wouter";
import { OneOperation } from "./OneOperation";
import { OperationList } from "./OperationList";

/** Changes of many dead letters: all of them, or one. */
export default function Operations() {
  const [, one] = useRoute("/operations/:id");
  return one?.id ? <OneOperation key={one.id} id={one.id} /> : <OperationList />;
}
