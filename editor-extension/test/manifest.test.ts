import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = process.cwd(); // vitest runs in the extension's folder
interface Manifest {
  version: string;
  icon: string;
  activationEvents: string[];
  extensionKind: string[];
  contributes: {
    commands: { command: string }[];
    configuration: { properties: Record<string, { markdownDescription?: string; default?: unknown; scope?: string }> };
    walkthroughs: { steps: { description: string; media: { image?: string; markdown?: string } }[] }[];
  };
  capabilities: { untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] } };
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

test("every setting is described, has a default, and is declared in the protocol", () => {
  const known = readFileSync(join(root, "../engine/mugraph/protocol/settings.py"), "utf8");
  for (const [name, setting] of Object.entries(configuration.properties)) {
    expect(setting.markdownDescription, name).toMatch(/\.$/);
    expect(setting.default, name).toBeDefined();
    const key = name.replace(/^mugraph\./, "");
    expect(known, name).toMatch(new RegExp(`Setting\\(\\s*"${key}",`));
  }
});

test("what could make the editor run something is not taken from an untrusted workspace", () => {
  const { supported, restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
  expect(supported).toBe("limited");
  expect(restrictedConfigurations).toEqual(["mugraph.interpreter", "mugraph.engine.command", "mugraph.server.installFrom"]);
  expect(configuration.properties["mugraph.interpreter"]?.scope).toBe("resource");
});

test("the walkthrough's pictures are there", () => {
  for (const { steps } of walkthroughs) {
    for (const { media } of steps) expect(existsSync(join(root, media.image ?? media.markdown ?? ""))).toBe(true);
  }
});

test("the icon, the README's pictures and the changelog of this version are there", () => {
  const icon = readFileSync(join(root, manifest.icon));
  expect([icon.readUInt32BE(16), icon.readUInt32BE(20)]).toEqual([256, 256]); // width and height of a PNG
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const pictures = [...readme.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map((match) => match[1] ?? "");
  expect(pictures.length).toBeGreaterThanOrEqual(2);
  for (const picture of pictures) expect(existsSync(join(root, picture)), picture).toBe(true);
  expect(readFileSync(join(root, "CHANGELOG.md"), "utf8")).toContain(`## ${manifest.version}\n`);
});

test("nothing in the extension or its page reaches for a network", () => {
  // The language client speaks through pipes; `net` is for its other ways, which are not used.
  expect(code).not.toMatch(/\bfetch\(|XMLHttpRequest|WebSocket|from "(node:)?(https?|http2|net|tls|dgram|dns)"/);
  const page = readFileSync(join(root, "src/graph/page.ts"), "utf8");
  expect(page).toContain("default-src 'none'");
  expect(page).not.toMatch(/https?:\/\//);
});
