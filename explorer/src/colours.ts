import type { View } from "./types";

export interface Paint {
  fill: string;
  ink: string;
  faint: string;
  line: string;
}

/** The tones of a theme: lightness and chroma of closed and open boxes, and the colours of text. */
interface Tone {
  closed: [number, number];
  open: [number, number];
  ink: string;
  faint: string;
}

const LIGHT: Tone = { closed: [0.875, 0.072], open: [0.962, 0.02], ink: "#1b1f2a", faint: "#1b1f2aa8" };
const DARK: Tone = { closed: [0.43, 0.078], open: [0.272, 0.032], ink: "#f3f4f8", faint: "#f3f4f8a6" };

/** Hues of the categories in a legend, easy to distinguish. */
const HUES = [255, 45, 150, 320, 90, 200, 15, 285, 120, 68];

export const toneOf = (dark: boolean): Tone => (dark ? DARK : LIGHT);

/** The hue of a branch. Consecutive branches differ by the golden angle. */
const hueOf = (branch: number): number => (255 + branch * 137.508) % 360;

const colour = (lightness: number, chroma: number, hue: number): string =>
  `oklch(${lightness.toFixed(3)} ${chroma.toFixed(3)} ${hue.toFixed(1)})`;

/** The paint of a box by its branch. */
export function branchPaint(branch: number, depth: number, open: boolean, dark: boolean): Paint {
  const tone = toneOf(dark);
  const [lightness, chroma] = open ? tone.open : tone.closed;
  const step = open ? (dark ? 0.035 : -0.022) * (depth - 1) : (dark ? -0.018 : 0.012) * (depth - 1);
  const hue = hueOf(branch);
  return {
    fill: colour(lightness + step, chroma + (open ? 0.008 * (depth - 1) : 0), hue),
    ink: tone.ink,
    faint: tone.faint,
    line: colour(dark ? 0.5 : 0.78, dark ? 0.07 : 0.075, hue),
  };
}

/** The paint of a box by the selected column; grey if it has no value. */
export function columnPaint(value: number | null, share: number | null, view: View, dark: boolean): Paint {
  const tone = toneOf(dark);
  const line = dark ? "#ffffff26" : "#0000001f";
  const grey = { fill: colour(dark ? 0.36 : 0.9, 0.005, 260), ink: tone.ink, faint: tone.faint, line };
  if (value === null || (view.legend.length && value < 0)) return grey;
  if (view.legend.length) {
    const [lightness, chroma] = tone.closed;
    const purity = 0.25 + 0.75 * (share ?? 1); // mixed clusters are pale
    return { ...grey, fill: colour(lightness, chroma * 1.25 * purity, nameHue(value)) };
  }
  const [least = 0, most = 1] = view.span;
  return { ...grey, ...numberPaint(most > least ? (value - least) / (most - least) : 0.5, dark) };
}

export const nameHue = (index: number): number => HUES[index % HUES.length]!;

/** The paint of a number on a scale from 0 to 1, with a readable text colour. */
export function numberPaint(part: number, dark: boolean): { fill: string; ink: string; faint: string } {
  const lightness = dark ? 0.3 + 0.42 * part : 0.95 - 0.45 * part;
  const pale = lightness > 0.62;
  return {
    fill: colour(lightness, 0.03 + 0.12 * part, 250 - 70 * part),
    ink: pale ? "#10141c" : "#ffffff",
    faint: pale ? "#10141cb0" : "#ffffffb8",
  };
}
