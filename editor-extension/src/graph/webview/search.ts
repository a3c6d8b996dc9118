import type { Candidate, SearchView } from "../../common/protocol";
import { plot } from "../plot";
import { baseline, microseconds, origin, seconds, summary, units, type Unit } from "../searchWords";

const PLOT_HEIGHT = 124;
const LEAST_WIDTH = 220;

/** Candidates found so far, with their times, and the cost plotted over the search. */
export class SearchPanel {
  private view: SearchView | undefined;

  constructor(private readonly place: HTMLElement) {
    place.addEventListener("pointerover", (event) => this.point(event.target));
    place.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(() => this.drawPlots()).observe(place);
  }

  show(view: SearchView): void {
    this.view = view;
    const top = this.place.scrollTop;
    const parts: Node[] = [text("p", summary(view), "summary")];
    for (const unit of units(view.candidates)) parts.push(...this.unit(unit, view));
    if (view.candidates.length > 0) parts.push(text("p", origin(view), "origin"));
    this.place.replaceChildren(...parts);
    this.drawPlots();
    this.place.scrollTop = top;
  }

  private unit(unit: Unit, view: SearchView): Node[] {
    const figure = document.createElement("figure");
    figure.dataset.kernel = unit.kernel;
    const title = units(view.candidates).length > 1 ? [text("h2", unit.kernel)] : [];
    return [...title, figure, table(unit.candidates)];
  }

  /** As wide as there is room. */
  private drawPlots(): void {
    const { view } = this;
    if (view === undefined) return;
    for (const figure of this.place.querySelectorAll("figure")) {
      const mine = view.candidates.filter((one) => one.kernel === figure.dataset.kernel);
      const ended = view.search === null ? 0 : units(view.candidates).length === 1 ? view.seconds : 0;
      const size = { width: Math.max(LEAST_WIDTH, figure.clientWidth), height: PLOT_HEIGHT };
      const parsed = new DOMParser().parseFromString(plot(mine, size, ended, baseline(view)), "image/svg+xml");
      figure.replaceChildren(document.importNode(parsed.documentElement, true));
    }
  }

  /** A row and its marks are emphasised together. */
  private point(target: EventTarget | null): void {
    const named = target instanceof Element ? target.closest("[data-candidate]") : null;
    const wanted = named?.getAttribute("data-candidate");
    for (const one of this.place.querySelectorAll("[data-candidate]")) {
      one.classList.toggle("pointed", wanted !== undefined && one.getAttribute("data-candidate") === wanted);
    }
  }
}

function table(candidates: readonly Candidate[]): HTMLTableElement {
  const made = document.createElement("table");
  const head = made.createTHead().insertRow();
  for (const [words, hint] of [
    ["found", "seconds into the search"],
    ["estimate", "microseconds by the cost model"],
    ["measured", "microseconds on the GPU"],
  ] as const) {
    const cell = text("th", words);
    cell.setAttribute("scope", "col");
    cell.title = hint;
    head.append(cell);
  }
  for (const one of candidates) {
    const body = made.createTBody();
    body.dataset.candidate = `${one.kernel} ${String(one.number)}`;
    body.classList.toggle("chosen", one.chosen);
    body.insertRow().append(
      text("td", seconds(one.seconds)),
      text("td", `${microseconds(one.estimate_us)} µs`),
      text("td", one.measured_us === null ? "–" : `${microseconds(one.measured_us)} µs`),
    );
    const words = text("td", one.words, "words") as HTMLTableCellElement;
    words.colSpan = 3;
    if (one.chosen) words.prepend(text("strong", "Chosen: "));
    body.insertRow().append(words);
  }
  return made;
}

function text(tag: string, words: string, look = ""): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = words;
  if (look !== "") made.className = look;
  return made;
}
