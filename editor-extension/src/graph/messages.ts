/** Between the extension and the μGraph view's page. */

import type { SearchView } from "../common/protocol";

export interface RegionChoice {
  readonly key: string;
  readonly label: string;
}

export type ToPage =
  /** What is shown, and what its search has found so far. svg: undefined leaves the drawing as it is, "" is none yet. */
  | {
      readonly type: "show";
      readonly svg: string | undefined;
      readonly title: string;
      readonly search: SearchView;
      readonly regions: readonly RegionChoice[];
    }
  | { readonly type: "select"; readonly places: readonly number[] }
  | { readonly type: "none"; readonly sentence: string };

export type FromPage =
  | { readonly type: "ready" }
  /** places: those of the user's code that the box comes from, by number. */
  | { readonly type: "node"; readonly places: readonly number[] }
  | { readonly type: "unselect" }
  | { readonly type: "region"; readonly key: string }
  | { readonly type: "command"; readonly command: "apply" | "change" | "kernel" };
