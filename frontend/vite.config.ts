import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const service = process.env.OUTBOX_URL ?? "http://127.0.0.1:8000";

/** Sets the page's base as the admin does in production, for the mount path of the development server. */
const baseInDevelopment: Plugin = {
  name: "base-in-development",
  apply: "serve",
  transformIndexHtml: (page) => page.replace('<base href="./" />', '<base href="/outbox/ui/" />'),
};

/** The font's licence must be distributed with it. */
const fontLicence: Plugin = {
  name: "font-licence",
  apply: "build",
  generateBundle() {
    const source = readFileSync(
      new URL("./node_modules/@fontsource-variable/inter/LICENSE", import.meta.url),
    );
    this.emitFile({ type: "asset", fileName: "inter-OFL.txt", source });
  },
};

export default defineConfig(({ command }) => ({
  // Relative, because the admin can be mounted under any prefix.
  base: command === "serve" ? "/outbox/ui/" : "./",
  plugins: [react(), baseInDevelopment, fontLicence],
  resolve: { alias: { "~": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../outbox/admin/ui/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    manifest: true,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // One chunk for the code of every page, because many small chunks compress worse.
        codeSplitting: {
          groups: [
            {
              name: "base",
              test: /node_modules\/(react|react-dom|scheduler|wouter|@tanstack)\/|src\/(app\/(App|Boundary|Live|Shell|pages|useMenu)|lib\/(clock|format|mount|preferences|store|url-state)|texts\/(api|common|states|ui)|ui\/(Panel|State|Time|states))\.tsx?$/,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: { "^/outbox/(?!ui/)": { target: service } },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/setup.ts"],
    restoreMocks: true,
    testTimeout: 30_000,
    env: { TZ: "UTC" },
  },
}));
