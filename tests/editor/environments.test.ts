// VS Code before and after trust is given, with an environment that lacks mugraph, and one that has it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { CodeServer } from "./lib/codeServer.ts";
import { python } from "./lib/paths.ts";
import { below } from "./lib/processes.ts";
import { pause, until } from "./lib/wait.ts";
import { Workbench, browse } from "./lib/workbench.ts";
import { Workspace } from "./lib/workspace.ts";

const FILE = "rmsnorm_linear.py";

describe("environments", { timeout: 300_000 }, () => {
  const workspace = new Workspace([FILE]);
  const bare = join(workspace.root, "bare");
  const wheel = join(workspace.root, "mugraph-0.1.0-py3-none-any.whl");
  let server: CodeServer;
  let browser: Browser;
  let code: Workbench;

  before(async () => {
    execFileSync(python, ["-m", "venv", bare]);
    execFileSync(python, [join(import.meta.dirname, "lib/wheel.py"), wheel]);
    server = await CodeServer.start(workspace, {
      "security.workspace.trust.enabled": true,
      "security.workspace.trust.startupPrompt": "never",
      "security.workspace.trust.banner": "never",
      "mugraph.interpreter": join(bare, "bin/python"),
      "mugraph.server.installFrom": wheel,
    });
    browser = await browse();
    code = await Workbench.open(browser, server.address(workspace.path(FILE)));
  });

  after(async () => {
    await browser.close();
    const left = await server.stop();
    workspace.remove();
    assert.deepEqual(left, [], "processes that outlived the editor");
  });

  const step = (name: string, work: () => Promise<void>): void => {
    test(name, async () => {
      try {
        await work();
      } catch (error) {
        await code.screenshot(`failed-${name.replace(/\W+/g, "-").slice(0, 40)}`);
        throw error;
      }
    });
  };
  const running = () => below(server.pid).filter(({ command }) => /mugraph_server|mugraph\.worker/.test(command));
  const pythons = () => below(server.pid).filter(({ command }) => /(^|\/)python[\d.]* /.test(command));
  const icon = (name: string): Promise<unknown> =>
    until(`the status item shows ${name}`, async () => (await code.status().innerHTML()).includes(`codicon-${name}`), 60_000);

  step("nothing runs before the workspace is trusted", async () => {
    await code.status().waitFor({ timeout: 60_000 });
    await icon("shield");
    await pause(2000);
    assert.deepEqual(pythons(), []);
    await code.screenshot("untrusted");
    await code.status().click();
    await code.page.getByRole("button", { name: "Trust", exact: true }).first().click();
    await until("a message", async () => (await code.toasts()).find((text) => text.includes("not installed")));
  });

  step("a missing mugraph is said once, with a button that installs it, and then it works", async () => {
    const message = await until("a message", async () => (await code.toasts()).find((text) => text.includes("not installed")));
    assert.ok(message.includes(join(bare, "bin/python")), message);
    assert.equal((await code.toasts()).filter((text) => text.includes("mugraph")).length, 1);
    assert.ok(await code.page.getByRole("button", { name: "Install mugraph there" }).isVisible());
    assert.deepEqual(running(), []);
    await code.screenshot("missing");
    await code.page.getByRole("button", { name: "Install mugraph there" }).click();
    await until("pip has installed it", () => readdirSync(join(bare, "lib")).some((version) =>
      existsSync(join(bare, "lib", version, "site-packages/mugraph-0.1.0.dist-info")),
    ), 60_000);
    await until("the server runs there", () => running().some(({ command }) => command.startsWith(bare)), 30_000);
    await code.startOver();
    await code.open(FILE);
    await code.lens(/× by estimate, verified/, 90_000);
  });

  step("another interpreter is taken at once, and nothing else starts the server anew", async () => {
    const set = { ...server.settings, "mugraph.interpreter": python };
    await code.setSettings(server.settingsFile, set);
    await code.open(FILE);
    await code.lens(/× by estimate, verified/, 90_000);
    const servers = () => running().filter(({ command }) => command.includes("-m mugraph_server"));
    await until("one server, of the other interpreter", () => servers().length === 1 && servers()[0]?.command.startsWith(python));
    const pid = servers()[0]?.pid;
    await code.setSettings(server.settingsFile, { ...set, "mugraph.search.budget": 10, "mugraph.views.inlayHints": false });
    await code.open(FILE);
    await code.lens(/× by estimate, verified/);
    await until("the hints are gone", async () => !(await code.text()).includes("with mugraph"));
    await pause(1000);
    assert.deepEqual(servers().map((one) => one.pid), [pid]);
  });
});
