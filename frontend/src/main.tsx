import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "~/app/App";
import { reloadAfterUpdates } from "~/app/reload";
import { listenForBack } from "~/lib/unsaved";
import "~/ui/fonts.css";
import "~/ui/tokens.css";
import "~/ui/base.css";

const root = document.getElementById("root");
if (!root) throw new Error("the page lacks its element #root");
reloadAfterUpdates();
listenForBack();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
