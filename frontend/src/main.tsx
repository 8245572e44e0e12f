import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "~/app/App";
import { loadAnewAfterUpdates } from "~/app/anew";
import "~/ui/tokens.css";
import "~/ui/base.css";

const root = document.getElementById("root");
if (!root) throw new Error("the page lacks its element #root");
loadAnewAfterUpdates();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
