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
const SIZE = { width: 1180, height: 720 };
const media = join(repository, "editor-extension/media");
mkdirSync(join(media, "walkthrough"), { recursive: true });

interface Clip {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
const ALL: Clip = { x: 0, y: 0, ...SIZE };

async function take(code: Workbench, name: string, clip: Clip): Promise<void> {
  const path = join(media, `${name}.png`);
  await code.page.screenshot({ path, clip, animations: "disabled" });
  execFileSync("pngquant", ["--force", "--speed", "1", "--output", path, "128", path]);
}

async function pictures(theme: string, ending: string): Promise<void> {
  const workspace = new Workspace([FILE]);
  const server = await CodeServer.start(workspace, {
    "workbench.activityBar.location": "hidden",
    "workbench.colorTheme": theme,
    "editor.fontSize": 13,
    "editor.stickyScroll.enabled": false,
    "breadcrumbs.enabled": false,
  });
  const browser = await browse();
  const away = () => code.page.mouse.move(SIZE.width - 5, 200);
  const code = await Workbench.open(browser, server.address(workspace.path(FILE)), SIZE);
  try {
    await code.page.keyboard.press("Control+b");
    await code.lens(/×.*(by estimate|measured), verified/, 120_000);
    await code.putCursor("import torch");
    await code.page.keyboard.press("ArrowDown");
    await code.page.keyboard.press("ArrowDown");
    await until("the search is over", async () => (await code.status().innerHTML()).includes("codicon-zap"), 60_000);
    await away();
    await pause(1500);
    if (ending === "") await take(code, "walkthrough/open", { ...ALL, height: 352 });
    await code.putCursor("self.norm(x");
    await code.hover("self.norm(x", { selector: "img" });
    await pause(800);
    await take(code, `hover${ending}`, { ...ALL, height: 352 });
    await code.page.keyboard.press("Escape");
    await code.command("mugraph: Show the μGraph");
    const frame = code.frame();
    await frame.locator("rect.matmul").first().click();
    await until("the operator's words", async () => ((await frame.locator("#node").textContent()) ?? "").includes("product"));
    await away();
    await pause(1500);
    await take(code, `graph${ending}`, ALL);
    if (ending === "") await take(code, "walkthrough/graph", { ...ALL, y: SIZE.height / 2 - 14, height: SIZE.height / 2 - 10 });
  } finally {
    await browser.close();
    await server.stop();
    workspace.remove();
  }
}

await pictures("Dark Modern", "");
await pictures("Light Modern", "-light");
