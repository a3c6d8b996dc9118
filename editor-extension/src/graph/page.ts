import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** The page: nothing from a network, no inline style or script, images only as data. */
export function page(webview: vscode.Webview, root: vscode.Uri): string {
  const nonce = randomBytes(16).toString("base64url");
  const at = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(root, "dist", name)).toString();
  const policy = [
    "default-src 'none'",
    `img-src ${webview.cspSource} data:`,
    `style-src ${webview.cspSource}`,
    `font-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${at("graph.css")}">
<title>μGraph</title>
</head>
<body>
<header>
  <div>
    <div class="headline"><h1 id="title"></h1><select id="regions" aria-label="Region" hidden></select></div>
    <p id="sentence"></p>
  </div>
  <div class="actions">
    <span id="actions" hidden>
      <button id="apply">Apply</button>
      <button id="change" class="secondary" title="Both texts, side by side">See the change</button>
      <button id="kernel" class="secondary" title="The generated Triton kernel">See the kernel</button>
    </span>
    <button id="toggle" class="secondary" aria-pressed="true" aria-controls="search" title="What the search has found, and when" hidden>Candidates</button>
  </div>
</header>
<div class="content">
  <main id="stage" tabindex="0" aria-label="μGraph; drag to move, scroll to zoom">
    <div id="drawing"></div>
    <p id="empty"></p>
    <div class="zoom" id="zoom" hidden>
      <button id="out" class="secondary" title="Smaller (−)" aria-label="Smaller">−</button>
      <button id="fit" class="secondary" title="Fit (0)" aria-label="Fit into view">Fit</button>
      <button id="in" class="secondary" title="Larger (+)" aria-label="Larger">+</button>
    </div>
  </main>
  <aside id="search" aria-label="Candidates of the search" hidden></aside>
</div>
<footer><p id="node" aria-live="polite"></p></footer>
<script nonce="${nonce}" src="${at("graph.js")}"></script>
</body>
</html>`;
}
