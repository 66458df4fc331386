import { defineConfig } from "vite";

// Three files with fixed names, so that the same source always makes the same bytes.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/agglo/explore/static",
    emptyOutDir: true,
    assetsInlineLimit: 100_000,
    modulePreload: false,
    target: "es2022",
    rolldownOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
});
