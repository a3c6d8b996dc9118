import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repository } from "./paths.ts";

/** A folder with copies of samples, and one for what the editor and mugraph keep; nothing of the user's is touched. */
export class Workspace {
  readonly root = mkdtempSync(join(tmpdir(), "mugraph-editor-"));
  readonly folder = join(this.root, "samples");
  readonly cache = join(this.root, "cache");

  constructor(samples: readonly string[]) {
    mkdirSync(this.folder);
    mkdirSync(this.cache);
    for (const name of samples) cpSync(join(repository, "samples", name), this.path(name));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  get environment(): NodeJS.ProcessEnv {
    return { ...process.env, MUGRAPH_CACHE_DIR: this.cache };
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
