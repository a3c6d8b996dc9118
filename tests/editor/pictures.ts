// The pictures of the READMEs and of the walkthrough, taken anew: node pictures.ts, after the package was built.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CodeServer } from "./lib/codeServer.ts";
import { repository } from "./lib/paths.ts";
import { pause, until } from "./lib/wait.ts";
import { Workbench, browse } from "./lib/workbench.ts";
import { Workspace } from "./lib/workspace.ts";

const FILE = "rmsnorm_linear.py";
const SIZE = { width: 1080, height: 640 };
const media = join(repository, "editor-extension/media");
mkdirSync(join(media, "walkthrough"), { recursive: true });

const workspace = new Workspace([FILE]);
const server = await CodeServer.start(workspace, { "workbench.activityBar.location": "hidden", "editor.fontSize": 13 });
const browser = await browse();

async function take(name: string, clip: { x: number; y: number; width: number; height: number }): Promise<void> {
  const path = join(media, `${name}.png`);
  await code.page.mouse.move(SIZE.width - 5, SIZE.height / 2);
  await code.page.screenshot({ path, clip, animations: "disabled" });
  execFileSync("pngquant", ["--force", "--speed", "1", "--output", path, "128", path]);
}

const code = await Workbench.open(browser, server.address(workspace.path(FILE)), SIZE);
try {
  await code.page.keyboard.press("Control+b");
  await code.lens(/× (estimated|measured), verified/, 120_000);
  await code.putCursor("import torch");
  await pause(1500);
  const editor = { x: 0, y: 0, width: SIZE.width, height: 345 };
  await take("walkthrough/open", editor);
  await code.putCursor("self.norm(x");
  await code.hover("self.norm(x");
  await code.page.locator(".monaco-hover:visible img").first().waitFor();
  await pause(800);
  const path = join(media, "hover.png");
  await code.page.screenshot({ path, clip: { ...editor, height: 360 }, animations: "disabled" });
  execFileSync("pngquant", ["--force", "--speed", "1", "--output", path, "128", path]);
  await code.page.keyboard.press("Escape");
  await code.command("mugraph: Show the μGraph");
  const frame = code.frame();
  await frame.locator("rect.matmul").first().click();
  await until("the operator's words", async () => ((await frame.locator("#node").textContent()) ?? "").includes("product"));
  await pause(1500);
  await take("graph", { x: 0, y: 0, ...SIZE });
  await take("walkthrough/graph", { x: 0, y: SIZE.height / 2 - 10, width: SIZE.width, height: SIZE.height / 2 - 20 });
} finally {
  await browser.close();
  await server.stop();
  workspace.remove();
}
