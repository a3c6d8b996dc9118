import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = process.cwd(); // vitest runs in the extension's folder
interface Manifest {
  contributes: {
    commands: { command: string }[];
    configuration: { properties: Record<string, { markdownDescription?: string; default?: unknown; scope?: string }> };
    walkthroughs: { steps: { description: string; media: { image?: string; markdown?: string } }[] }[];
  };
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
}
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
const code = sources(join(root, "src"));
const { commands, configuration, walkthroughs } = manifest.contributes;

function sources(folder: string): string {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => (entry.isDirectory() ? sources(join(folder, entry.name)) : readFileSync(join(folder, entry.name), "utf8")))
    .join("\n");
}

test("every command of the palette and of the walkthrough is registered", () => {
  const named = walkthroughs.flatMap(({ steps }) =>
    steps.flatMap(({ description }) => [...description.matchAll(/command:([\w.]+)/g)].map((match) => match[1] ?? "")),
  );
  for (const command of [...commands.map((one) => one.command), ...named]) expect(code).toContain(`"${command}": `);
});

test("every setting is described, has a default, and is one the server knows", () => {
  const known = readFileSync(join(root, "../server/mugraph_server/settings.py"), "utf8");
  for (const [name, setting] of Object.entries(configuration.properties)) {
    expect(setting.markdownDescription, name).toMatch(/\.$/);
    expect(setting.default, name).toBeDefined();
    const key = name.replace(/^mugraph\./, "");
    // What begins so stays in the editor; the server is told to expect it.
    if (!/^(server|trace)\./.test(key)) expect(known, name).toContain(`"${key}": (`);
  }
});

test("what could make the editor run something is not taken from an untrusted workspace", () => {
  const { restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
  expect(restrictedConfigurations).toEqual(["mugraph.interpreter", "mugraph.engine.command", "mugraph.server.installFrom"]);
  expect(configuration.properties["mugraph.interpreter"]?.scope).toBe("resource");
});

test("the walkthrough's pictures are there", () => {
  for (const { steps } of walkthroughs) {
    for (const { media } of steps) expect(existsSync(join(root, media.image ?? media.markdown ?? ""))).toBe(true);
  }
});
