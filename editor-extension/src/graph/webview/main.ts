import type { FromPage, ToPage } from "../messages";
import { describe, placesIn, readNode, type GraphNode } from "../nodes";
import { SearchPanel } from "./search";
import { Stage } from "./stage";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

interface Box {
  readonly element: SVGGElement;
  readonly node: GraphNode;
  /** Of the user's code, by number. */
  readonly places: readonly number[];
  /** The thread graph it is in. */
  readonly thread: string | null;
}

const editor = acquireVsCodeApi();
const title = element("title");
const sentence = element("sentence");
const regions = element("regions") as HTMLSelectElement;
const actions = element("actions");
const drawing = element("drawing");
const empty = element("empty");
const zoom = element("zoom");
const about = element("node");
const aside = element("search");
const toggle = element("toggle");
const search = new SearchPanel(aside);
const stage = new Stage(element("stage"), drawing, () => select(undefined));
const shadow = drawing.attachShadow({ mode: "open" });
let boxes: readonly Box[] = [];
let key = "";

window.addEventListener("message", (event: MessageEvent<ToPage>) => {
  const message = event.data;
  switch (message.type) {
    case "show":
      show(message);
      break;
    case "select":
      mark(boxes.filter((box) => box.places.some((place) => message.places.includes(place))));
      break;
    case "none":
      title.textContent = "μGraph";
      sentence.textContent = "";
      clear(message.sentence);
      aside.hidden = toggle.hidden = true;
  }
});

regions.addEventListener("change", () => editor.postMessage({ type: "region", key: regions.value }));
for (const command of ["apply", "change", "kernel"] as const) {
  element(command).addEventListener("click", () => editor.postMessage({ type: "command", command }));
}
toggle.addEventListener("click", () => {
  aside.hidden = !aside.hidden;
  toggle.setAttribute("aria-pressed", String(!aside.hidden));
});
element("in").addEventListener("click", () => stage.zoom(1.25));
element("out").addEventListener("click", () => stage.zoom(0.8));
element("fit").addEventListener("click", () => stage.fit());
editor.postMessage({ type: "ready" });

function show(message: Extract<ToPage, { type: "show" }>): void {
  const { search: found, svg } = message;
  title.textContent = message.title;
  sentence.textContent = found.message;
  actions.hidden = found.state !== "improved";
  regions.hidden = message.regions.length < 2;
  regions.replaceChildren(...message.regions.map(({ key: value, label }) => new Option(label, value, false, value === found.key)));
  toggle.hidden = false;
  aside.hidden = toggle.getAttribute("aria-pressed") !== "true";
  search.show(found);
  if (svg === "") clear(found.search === null ? "The μGraph is drawn when the search has found one." : "Nothing was found that could be drawn.");
  else if (svg !== undefined) draw(svg, found.key);
}

function clear(why: string): void {
  shadow.replaceChildren();
  boxes = [];
  mark([]);
  empty.textContent = why;
  actions.hidden = zoom.hidden = true;
}

function draw(text: string, drawn: string): void {
  empty.textContent = "";
  zoom.hidden = false;
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const svg = document.importNode(parsed, true) as unknown as SVGSVGElement;
  // The page's policy forbids style elements; the same rules as a constructed sheet are allowed.
  const rules = new CSSStyleSheet();
  rules.replaceSync(`${[...svg.querySelectorAll("style")].map((style) => style.textContent).join("\n")}\n${OURS}`);
  svg.querySelectorAll("style, script, foreignObject").forEach((unwanted) => unwanted.remove());
  shadow.adoptedStyleSheets = [rules];
  shadow.replaceChildren(svg);
  boxes = [...svg.querySelectorAll<SVGGElement>("g")].flatMap((group) => box(group) ?? []);
  for (const one of boxes) prepare(one);
  mark([]);
  stage.take(svg, drawn !== key);
  key = drawn;
}

const OURS = `
g[tabindex] { cursor: pointer; outline: none }
g[tabindex]:hover > rect, g[tabindex]:focus-visible > rect { stroke: var(--vscode-focusBorder); stroke-width: 1.6 }
g.selected > rect { stroke: var(--vscode-focusBorder); stroke-width: 2.6 }
`;

function box(group: SVGGElement): Box | undefined {
  const heading = group.querySelector(":scope > title")?.textContent;
  const look = group.querySelector(":scope > rect")?.getAttribute("class");
  if (!heading || !look) return undefined;
  const name = group.querySelector(":scope > text")?.textContent ?? "";
  return {
    element: group,
    node: readNode(heading, look, name),
    places: placesIn(group.getAttribute("data-source")),
    thread: group.getAttribute("data-thread"),
  };
}

function prepare(one: Box): void {
  const { name, what } = describe(one.node, one.thread);
  one.element.setAttribute("tabindex", "0");
  one.element.setAttribute("role", "button");
  one.element.setAttribute("aria-label", `${name}: ${what}`);
  one.element.addEventListener("click", (event) => {
    event.stopPropagation();
    if (!stage.wasDragged) select(one);
  });
  one.element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      select(one);
    }
  });
}

function select(one: Box | undefined): void {
  mark(one === undefined ? [] : [one]);
  if (one === undefined) editor.postMessage({ type: "unselect" });
  else editor.postMessage({ type: "node", places: one.places });
}

function mark(selected: readonly Box[]): void {
  for (const one of boxes) one.element.classList.toggle("selected", selected.includes(one));
  about.replaceChildren();
  const first = selected[0];
  if (first === undefined) {
    about.textContent = boxes.length === 0 ? "" : "Select an operator to see the code it comes from, or put the cursor into the code.";
    return;
  }
  const { name, what } = describe(first.node, first.thread);
  const strong = document.createElement("strong");
  strong.textContent = name;
  const more = selected.length > 1 ? `  and ${String(selected.length - 1)} more` : "";
  about.append(strong, `  ${what}${more}`);
}

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}
