// Colours of even lightness, computed in OKLCH: no service or package shouts louder than another.

export type Rgb = readonly [number, number, number];

/** OKLCH to 8-bit sRGB, clipped to the gamut. Formulae: Björn Ottosson, "A perceptual color space for image processing". */
export function oklchToRgb(lightness: number, chroma: number, degrees: number): Rgb {
  const hue = (degrees * Math.PI) / 180;
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((channel) => {
    const clipped = Math.min(1, Math.max(0, channel));
    const encoded = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(encoded * 255);
  }) as unknown as Rgb;
}

/** FNV-1a: small, stable across sessions and browsers, so a package keeps its colour for good. */
export function stableHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  // FNV's low bits are weak for short names; one avalanche round spreads them over the hues.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return hash >>> 0;
}

export const HUES = 24;

export function hueDegrees(step: number): number {
  return step * (360 / HUES);
}

export function hueOf(text: string): number {
  return hueDegrees(stableHash(text) % HUES);
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

/** Edges, bars and lines: strong enough (3:1) against both panel colours. */
const markColour = (hue: number, theme: 'light' | 'dark') => css(theme === 'light' ? oklchToRgb(0.6, 0.13, hue) : oklchToRgb(0.72, 0.12, hue));

/** Colours of services that stand side by side: the usual one of each, moved to the nearest free hue where two would look alike. */
export function serviceColours(services: readonly string[], theme: 'light' | 'dark'): ReadonlyMap<string, string> {
  // Every second hue, so that neighbours differ; with more services than that, hues repeat.
  const places = HUES / 2;
  const taken = new Set<number>();
  const colours = new Map<string, string>();
  for (const service of [...new Set(services)].sort()) {
    let place = Math.floor((stableHash(service) % HUES) / 2);
    for (let tries = 0; taken.has(place) && tries < places; tries++) place = (place + 5) % places;
    if (taken.size >= places) taken.clear();
    taken.add(place);
    colours.set(service, markColour(hueDegrees(place * 2), theme));
  }
  return colours;
}
