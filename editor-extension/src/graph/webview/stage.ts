const LARGEST = 4;
const SMALLEST = 0.1;
const MARGIN = 14;
/** Half of the widest stroke, so that none is cut. */
const EDGE = 2;
/** More would make small graphs look clumsy. */
const LARGEST_FIT = 1.4;

/** Zooming and moving of the drawing. */
export class Stage {
  private scale = 1;
  private x = 0;
  private y = 0;
  private size = { width: 1, height: 1 };
  private isFitted = true;
  /** The last press moved the drawing, so it was no click. */
  wasDragged = false;

  constructor(
    private readonly frame: HTMLElement,
    private readonly drawing: HTMLElement,
    clickedBeside: () => void,
  ) {
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.press(event));
    frame.addEventListener("click", () => {
      if (!this.wasDragged) clickedBeside();
    });
    frame.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => {
      if (this.isFitted) this.fit();
    }).observe(frame);
  }

  take(svg: SVGSVGElement, isNew: boolean): void {
    // The drawing has margins of its own, for where it stands alone.
    svg.querySelector(":scope > .page")?.remove();
    const { x, y, width, height } = svg.getBBox();
    this.size = { width: width + 2 * EDGE || 1, height: height + 2 * EDGE || 1 };
    svg.setAttribute("viewBox", `${String(x - EDGE)} ${String(y - EDGE)} ${String(this.size.width)} ${String(this.size.height)}`);
    svg.setAttribute("width", String(this.size.width));
    svg.setAttribute("height", String(this.size.height));
    if (isNew || this.isFitted) this.fit();
  }

  fit(): void {
    const { clientWidth, clientHeight } = this.frame;
    const across = (clientWidth - 2 * MARGIN) / this.size.width;
    const down = (clientHeight - 2 * MARGIN) / this.size.height;
    this.scale = Math.max(SMALLEST, Math.min(LARGEST_FIT, across, down));
    this.x = (clientWidth - this.size.width * this.scale) / 2;
    this.y = (clientHeight - this.size.height * this.scale) / 2;
    this.isFitted = true;
    this.place();
  }

  /** About the middle, or about a point of the frame. */
  zoom(by: number, atX = this.frame.clientWidth / 2, atY = this.frame.clientHeight / 2): void {
    const next = Math.min(LARGEST, Math.max(SMALLEST, this.scale * by));
    const change = next / this.scale;
    this.x = atX - (atX - this.x) * change;
    this.y = atY - (atY - this.y) * change;
    this.scale = next;
    this.isFitted = false;
    this.place();
  }

  private place(): void {
    this.drawing.style.transform = `translate(${String(this.x)}px, ${String(this.y)}px) scale(${String(this.scale)})`;
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const frame = this.frame.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 400), event.clientX - frame.left, event.clientY - frame.top);
  }

  private press(down: PointerEvent): void {
    this.wasDragged = false;
    if (down.button !== 0) return;
    const from = { x: this.x - down.clientX, y: this.y - down.clientY };
    const move = (event: PointerEvent): void => {
      if (Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) > 4) this.wasDragged = true;
      if (!this.wasDragged) return;
      this.x = from.x + event.clientX;
      this.y = from.y + event.clientY;
      this.isFitted = false;
      this.place();
    };
    const over = new AbortController();
    window.addEventListener("pointermove", move, { signal: over.signal });
    window.addEventListener("pointerup", () => over.abort(), { signal: over.signal });
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
  }
}
