import { lazy, Suspense } from "react";
import { useParams } from "wouter";
import { useUrlState } from "~/lib/url-state";
import * as texts from "~/texts/chains";
import { Loading, Page } from "~/ui";
import { oneChain } from "./address";
import { Recent } from "./Recent";

const OneChain = lazy(() => import("./chain/OneChain"));

export default function Chains() {
  const { id: part } = useParams<{ id?: string }>();
  const [{ id: given }] = useUrlState(oneChain);
  if (part === undefined) return <Recent />;
  const id = part === "-" && given !== undefined ? given : part;
  return (
    <Suspense
      fallback={
        <Page title={texts.chain}>
          <Loading lines={6} />
        </Page>
      }
    >
      <OneChain key={id} id={id} />
    </Suspense>
  );
}
