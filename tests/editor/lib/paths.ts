import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

const here = resolve(import.meta.dirname, "..");
export const repository = resolve(here, "../..");
export const python = process.env["MUGRAPH_PYTHON"] ?? join(repository, ".venv/bin/python");
export const vsix = join(repository, "editor-extension/dist/mugraph.vsix");
export const chromium = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const codeServer = join(here, "node_modules/code-server/out/node/entry.js");
/** Screenshots and timings, where continuous integration can pick them up. */
export const out = join(here, "out");
mkdirSync(out, { recursive: true });
