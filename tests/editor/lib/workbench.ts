import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium as playwright, type Browser, type FrameLocator, type Locator, type Page } from "playwright-core";
import { chromium, out } from "./paths.ts";
import { until } from "./wait.ts";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const SIZE = { width: 1280, height: 760 };

export async function browse(): Promise<Browser> {
  const env = { ...process.env, FONTCONFIG_FILE: join(import.meta.dirname, "fonts.conf") } as Record<string, string>;
  return playwright.launch({ executablePath: chromium, headless: true, args: FLAGS, env });
}

/** One window of VS Code, as a person works with it. */
export class Workbench {
  readonly page: Page;

  private constructor(page: Page) {
    this.page = page;
  }

  static async open(browser: Browser, address: string, size = SIZE): Promise<Workbench> {
    const context = await browser.newContext({ viewport: size, deviceScaleFactor: 1.5 });
    context.setDefaultTimeout(20_000);
    const page = await context.newPage();
    await page.goto(address, { timeout: 60_000 });
    await page.locator(".monaco-workbench .part.editor").waitFor({ timeout: 60_000 });
    return new Workbench(page);
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }

  // --- what can be seen ------------------------------------------------------------------------------------------

  /** Lines on the screen from top to bottom; inlay hints are part of them. */
  async text(): Promise<string> {
    const lines = await this.page
      .locator(".editor-instance .view-line")
      .evaluateAll((found) =>
        found
          .map((line) => ({ top: parseFloat((line as HTMLElement).style.top), text: line.textContent }))
          .sort((one, other) => one.top - other.top)
          .map(({ text }) => text.replaceAll("\u00a0", " ")),
      );
    return lines.join("\n");
  }

  async lenses(): Promise<string[]> {
    const found = await this.page.locator(".codelens-decoration").allTextContents();
    return found.map((text) => text.replaceAll("\u00a0", " ").trim()).filter((text) => text !== "");
  }

  async lens(wanted: RegExp, limitMs = 60_000): Promise<string> {
    return until(`a lens like ${String(wanted)}`, async () => (await this.lenses()).find((text) => wanted.test(text)), limitMs);
  }

  status(): Locator {
    return this.page.locator("[id='mugraph.mugraph.mugraph.status']");
  }

  /** Waits until the editor that has just opened has laid itself out: the line stays where it is for half a second. */
  async resting(words: string): Promise<void> {
    let before = -1;
    let since = Date.now();
    await until(`"${words}" rests`, async () => {
      const { y } = await this.locate(words);
      if (y !== before) [before, since] = [y, Date.now()];
      return Date.now() - since > 500;
    });
  }

  /** Where a line is on the screen, noted ten times a second from now on. */
  async watchLine(words: string): Promise<() => Promise<string[]>> {
    await this.page.evaluate((wanted) => {
      const seen: string[] = [];
      let before = Number.NaN;
      const note = () => {
        const lines = [...document.querySelectorAll(".editor-instance .view-line")];
        const line = lines.find((one) => one.textContent.replaceAll("\u00a0", " ").includes(wanted));
        const top = line === undefined ? before : Math.round(line.getBoundingClientRect().top);
        if (top === before) return;
        before = top;
        const lenses = [...document.querySelectorAll(".codelens-decoration")].map((one) => one.textContent);
        seen.push(`${String(top)} px under ${lenses.join(" | ") || "no lens"}`);
      };
      note();
      const timer = setInterval(note, 100);
      Object.assign(window, { watched: () => (clearInterval(timer), seen) });
    }, words);
    return () => this.page.evaluate(() => (window as unknown as { watched: () => string[] }).watched());
  }

  async toasts(): Promise<string[]> {
    return this.page.locator(".notification-toast .notification-list-item-message").allTextContents();
  }

  frame(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  async screenshot(name: string, clip?: { x: number; y: number; width: number; height: number }): Promise<void> {
    await this.page.screenshot({ path: join(out, `${name}.png`), animations: "disabled", ...(clip && { clip }) });
  }

  // --- what a person does ----------------------------------------------------------------------------------------

  async command(title: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget:visible input.input");
    const row = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).first();
    // A workbench that is still loading does not know all commands yet.
    await until(`the command ${title}`, async () => {
      await this.page.keyboard.press("F1");
      await input.waitFor();
      await input.fill(`>${title}`);
      return row.click({ timeout: 4000 }).then(() => true, () => false);
    });
  }

  /** Puts the cursor at the first place where these words stand in the editor, and returns their middle. */
  async putCursor(words: string): Promise<{ x: number; y: number }> {
    const at = await this.locate(words);
    await this.page.mouse.click(at.x, at.y);
    return at;
  }

  /**
   * Rests the mouse on these words until a hover shows what is wanted. A hover does not change once it is there: one that
   * came before the server had looked at the file, or before the picture was drawn, is left, and asked for again.
   */
  async hover(words: string, wanted: { selector?: string; text?: string } = {}): Promise<Locator> {
    const { selector = ".hover-contents", text } = wanted;
    const filter = { has: this.page.locator(selector), ...(text !== undefined && { hasText: text }) };
    const hover = this.page.locator(".monaco-hover:visible").filter(filter).first();
    await until(`a hover with ${text ?? selector}`, async () => {
      const at = await this.locate(words);
      await this.page.mouse.move(at.x, at.y + 150);
      // A mouse that rests where it was does not hover.
      await this.page.mouse.move(at.x - 3, at.y);
      await this.page.mouse.move(at.x, at.y);
      if (await hover.waitFor({ timeout: 3000 }).then(() => true, () => false)) return true;
      await this.page.keyboard.press("Escape");
      return false;
    }, 40_000);
    return hover;
  }

  async lightBulb(): Promise<Locator> {
    const rows = this.page.locator(".action-widget:visible .monaco-list-row");
    // The editor shows lenses it remembers of a file before the server has looked at it again.
    await until("code actions", async () => {
      await this.page.keyboard.press("Control+.");
      return rows.first().waitFor({ timeout: 2000 }).then(() => true, () => false);
    });
    return rows;
  }

  /** No editor is open, and what was not saved is gone. */
  async startOver(): Promise<void> {
    for (let count = 0; count < 3; count++) await this.page.keyboard.press("Escape");
    if ((await this.page.locator(".tab").count()) === 0) return;
    await this.command("View: Close All Editor Groups");
    const refuse = this.page.getByRole("button", { name: "Don't Save" });
    await until("all editors are closed", async () => {
      if (await refuse.isVisible()) await refuse.click();
      return (await this.page.locator(".tab").count()) === 0;
    });
  }

  async open(file: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget:visible input.input");
    const row = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: file }).first();
    await until(`the file ${file}`, async () => {
      await this.page.keyboard.press("Control+p");
      await input.waitFor();
      await input.fill(file);
      return row.click({ timeout: 4000 }).then(() => true, () => false);
    });
  }

  /** As a person does who edits the file of settings. No editor is open afterwards. */
  async setSettings(file: string, settings: object): Promise<void> {
    const text = JSON.stringify(settings);
    await this.startOver();
    await this.command("Preferences: Open User Settings (JSON)");
    await this.locate("{");
    await this.page.locator(".editor-instance .view-lines").first().click();
    await this.page.keyboard.press("Control+a");
    await this.page.keyboard.press("Delete");
    await this.page.keyboard.insertText(text);
    await this.page.locator(".tab.dirty").waitFor();
    await this.save();
    await until("the settings are saved", () => readFileSync(file, "utf8").trim() === text);
    await this.startOver();
  }

  async save(): Promise<void> {
    await this.page.keyboard.press("Control+s");
  }

  async choose(entry: RegExp): Promise<void> {
    await this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: entry }).first().click();
  }

  private async locate(words: string): Promise<{ x: number; y: number }> {
    return until(`"${words}" in the editor`, async () => {
      const box = await this.page.evaluate((wanted) => {
        for (const line of document.querySelectorAll(".editor-instance .view-line")) {
          // A line is many pieces, one for each colour.
          const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
          const pieces: { node: Node; start: number; end: number }[] = [];
          let text = "";
          for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
            const start = text.length;
            text += (node.textContent ?? "").replaceAll("\u00a0", " ");
            pieces.push({ node, start, end: text.length });
          }
          const at = text.indexOf(wanted);
          if (at < 0) continue;
          const end = at + wanted.length;
          const first = pieces.find((piece) => piece.end > at);
          const last = pieces.find((piece) => piece.end >= end);
          if (first === undefined || last === undefined) continue;
          const range = document.createRange();
          range.setStart(first.node, at - first.start);
          range.setEnd(last.node, end - last.start);
          const { left, top, width, height } = range.getBoundingClientRect();
          return { x: left + width / 2, y: top + height / 2 };
        }
        return undefined;
      }, words);
      return box;
    });
  }
}
