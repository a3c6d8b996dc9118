/** Between the extension and the μGraph view's page. */

export interface RegionChoice {
  readonly key: string;
  readonly label: string;
}

export type ToPage =
  | {
      readonly type: "graph";
      readonly svg: string;
      readonly title: string;
      readonly sentence: string;
      readonly key: string;
      readonly regions: readonly RegionChoice[];
    }
  | { readonly type: "select"; readonly sources: readonly string[] }
  | { readonly type: "wait"; readonly sentence: string }
  | { readonly type: "none"; readonly sentence: string };

export type FromPage =
  | { readonly type: "ready" }
  /** sources: expressions of the user's code; none where the operator is of the region as a whole. */
  | { readonly type: "node"; readonly sources: readonly string[]; readonly reveal: boolean }
  | { readonly type: "unselect" }
  | { readonly type: "region"; readonly key: string }
  | { readonly type: "command"; readonly command: "apply" | "change" | "kernel" };
