import { branchPaint, columnPaint, type Paint, toneOf } from "./colours";
import { HEADER, type Mode, type PlacedBox } from "./layout";
import type { View } from "./types";

/** The state of the canvas that affects how boxes are drawn. */
export interface Look {
  mode: Mode;
  dark: boolean;
  colour: string;
  hover: number;
  focus: number;
  selected: Set<number>;
  /** A node to highlight, such as a search result. */
  marked: number;
}

const FONT = `Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;

/** Draws the boxes. A box must come after the box that contains it. */
export function draw(ink: CanvasRenderingContext2D, boxes: PlacedBox[], view: View, look: Look): void {
  ink.textBaseline = "alphabetic";
  for (const box of boxes) {
    if (box.index === 0 || box.hidden || box.width < 0.5 || box.height < 0.5) continue;
    const open = look.mode === "boxes" && box.children.length > 0;
    const paint = choosePaint(box, open, view, look);
    ink.fillStyle = paint.fill;
    traceRounded(ink, box, open ? 7 : 4);
    ink.fill();
    if (open || box.index === look.hover) {
      ink.strokeStyle = box.index === look.hover ? paint.ink : paint.line;
      ink.lineWidth = box.index === look.hover ? 1.5 : 1;
      traceRounded(ink, shrink(box, 0.5), open ? 7 : 4);
      ink.stroke();
    }
    if (open) drawHeader(ink, box, paint);
    else drawLabel(ink, box, paint);
  }
  for (const box of boxes) {
    const selected = look.selected.has(box.box.node);
    const marked = box.box.node >= 0 && box.box.node === look.marked;
    if (box.index === 0 || box.hidden || !(selected || marked || box.index === look.focus)) continue;
    const accent = look.dark ? "#8ab4ff" : "#1f5fd8";
    ink.strokeStyle = selected ? (look.dark ? "#ffd166" : "#c2410c") : accent;
    ink.lineWidth = marked || selected ? 3 : 2.5;
    traceRounded(ink, shrink(box, 1.5), 5);
    ink.stroke();
    if (selected) drawTick(ink, box, ink.strokeStyle, look.dark);
  }
}

function choosePaint(box: PlacedBox, open: boolean, view: View, look: Look): Paint {
  if (box.box.node < 0) {
    const tone = toneOf(look.dark);
    const fill = look.dark ? "#ffffff12" : "#00000010";
    return { fill, ink: tone.faint, faint: tone.faint, line: fill };
  }
  if (look.colour) {
    const paint = columnPaint(box.box.value, box.box.share, view, look.dark);
    return open ? { ...paint, fill: look.dark ? "#ffffff0d" : "#0000000a" } : paint;
  }
  return branchPaint(box.branch, box.depth, open, look.dark);
}

function drawHeader(ink: CanvasRenderingContext2D, box: PlacedBox, paint: Paint): void {
  if (box.width <= 46 || box.height <= 44) return;
  const size = box.depth === 1 ? 12.5 : 11.5;
  ink.fillStyle = paint.ink;
  ink.font = `600 ${size}px ${FONT}`;
  const number = box.box.size.toLocaleString("en");
  const maxWidth = box.width - 16;
  const y = box.y + HEADER / 2 + 4.5;
  ink.font = `400 ${size - 1.5}px ${FONT}`;
  const width = ink.measureText(number).width;
  const both = maxWidth - width > 70;
  if (both) {
    ink.fillStyle = paint.faint;
    ink.textAlign = "right";
    ink.fillText(number, box.x + box.width - 8, y);
    ink.textAlign = "left";
  }
  ink.fillStyle = paint.ink;
  ink.font = `600 ${size}px ${FONT}`;
  ink.fillText(clipText(ink, box.box.name, both ? maxWidth - width - 10 : maxWidth), box.x + 8, y);
}

function drawLabel(ink: CanvasRenderingContext2D, box: PlacedBox, paint: Paint): void {
  if (box.width < 34 || box.height < 15) return;
  const large = box.width * box.height > 14_000;
  const size = large ? 13 : box.height < 20 ? 10 : 11;
  const step = size * 1.28;
  const [padX, padY] = [box.width > 60 ? 7 : 4, box.height > 40 ? 7 : 3];
  const maxWidth = box.width - 2 * padX;
  ink.font = `${large ? 550 : 450} ${size}px ${FONT}`;
  const maxLines = Math.max(1, Math.floor((box.height - 2 * padY) / step));
  const withNumber = box.box.size > 1 && box.box.node >= 0 && maxLines > 1;
  const lines = wrapText(ink, box.box.name, maxWidth, withNumber ? Math.min(maxLines - 1, 5) : Math.min(maxLines, 5));
  let y = maxLines === 1 ? box.y + box.height / 2 + size * 0.35 : box.y + padY + size * 0.92;
  ink.fillStyle = paint.ink;
  for (const line of lines) {
    ink.fillText(line, box.x + padX, y);
    y += step;
  }
  if (withNumber) {
    ink.fillStyle = paint.faint;
    ink.font = `400 ${size - 1}px ${FONT}`;
    ink.fillText(clipText(ink, box.box.size.toLocaleString("en"), maxWidth), box.x + padX, y);
  }
}

/** Breaks a text into at most `maxLines` lines of `maxWidth` pixels; the last one is clipped. */
function wrapText(ink: CanvasRenderingContext2D, text: string, maxWidth: number, maxLines: number): string[] {
  const words = text.slice(0, 300).split(/\s+/);
  const lines: string[] = [];
  let line = "";
  for (let i = 0; i < words.length; i++) {
    const longer = line ? `${line} ${words[i]}` : words[i]!;
    if (!line || ink.measureText(longer).width <= maxWidth) {
      line = longer;
      continue;
    }
    if (lines.length === maxLines - 1) return [...lines, clipText(ink, `${line} ${words.slice(i).join(" ")}`, maxWidth)];
    lines.push(clipText(ink, line, maxWidth));
    line = words[i]!;
  }
  return [...lines, clipText(ink, line, maxWidth)].slice(0, maxLines);
}

/** Clips a text to `maxWidth` pixels, with an ellipsis. */
function clipText(ink: CanvasRenderingContext2D, text: string, maxWidth: number): string {
  if (ink.measureText(text).width <= maxWidth) return text;
  const letters = [...text.slice(0, 300)]; // whole characters, emoji too
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ink.measureText(`${letters.slice(0, middle).join("").trimEnd()}…`).width <= maxWidth) low = middle;
    else high = middle - 1;
  }
  return low ? `${letters.slice(0, low).join("").trimEnd()}…` : "";
}

function drawTick(ink: CanvasRenderingContext2D, box: PlacedBox, colour: string, dark: boolean): void {
  if (box.width < 26 || box.height < 26) return;
  const [x, y] = [box.x + box.width - 12, box.y + box.height - 12];
  ink.fillStyle = colour;
  ink.beginPath();
  ink.arc(x, y, 8, 0, 2 * Math.PI);
  ink.fill();
  ink.strokeStyle = dark ? "#1b1f2a" : "#ffffff";
  ink.lineWidth = 2;
  ink.beginPath();
  ink.moveTo(x - 3.6, y + 0.2);
  ink.lineTo(x - 1, y + 3);
  ink.lineTo(x + 3.8, y - 2.8);
  ink.stroke();
}

function shrink(box: PlacedBox, by: number): PlacedBox {
  const [width, height] = [Math.max(box.width - 2 * by, 0), Math.max(box.height - 2 * by, 0)];
  return { ...box, x: box.x + by, y: box.y + by, width, height };
}

function traceRounded(ink: CanvasRenderingContext2D, box: PlacedBox, radius: number): void {
  ink.beginPath();
  ink.roundRect(box.x, box.y, box.width, box.height, Math.min(radius, box.width / 2, box.height / 2));
}
