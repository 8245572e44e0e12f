import { lazy, Suspense } from "react";
import { useParams } from "wouter";
import { useUrlState } from "~/lib/url-state";
import { Loading, Page } from "~/ui";
import { oneChain } from "./address";
import { Recent } from "./Recent";

const OneChain = lazy(() => import("./chain/OneChain"));

export default function Chains() {
  const { id: part } = useParams<{ id?: string }>();
  const [{ id: beside }] = useUrlState(oneChain);
  if (part === undefined) return <Recent />;
  const id = part === "-" && beside !== undefined ? beside : part;
  return (
    <Suspense
      fallback={
        <Page title="Chain">
          <Loading lines={6} />
        </Page>
      }
    >
      <OneChain key={id} id={id} />
    </Suspense>
  );
}
