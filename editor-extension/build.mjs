// Two bundles: the extension, which runs in Node.js, and the μGraph view's script, which runs in a web page.
import * as esbuild from "esbuild";

const production = process.argv.includes("--production");
const common = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  target: "es2022",
  logLevel: "warning",
};
const bundles = [
  {
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    format: "cjs",
    external: ["vscode"],
  },
  {
    ...common,
    entryPoints: ["src/graph/webview/main.ts"],
    outfile: "dist/graph.js",
    platform: "browser",
    format: "iife",
  },
  {
    ...common,
    entryPoints: ["src/graph/webview/graph.css"],
    outfile: "dist/graph.css",
  },
];

if (process.argv.includes("--watch")) {
  for (const bundle of bundles) await (await esbuild.context(bundle)).watch();
} else {
  await Promise.all(bundles.map((bundle) => esbuild.build(bundle)));
}
