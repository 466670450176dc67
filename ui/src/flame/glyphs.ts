// Glyphs as alpha bitmaps, blended straight into the pixel buffer: text costs what its pixels cost, and no call per label.

export interface GlyphSheet {
  advance: number;
  height: number;
  /** Alpha of a character, `advance × height` bytes; drawn on first use. */
  alphaOf: (code: number) => Uint8Array;
}

const sheets = new Map<number, GlyphSheet>();

/** One sheet per device pixel ratio. The size is chosen so that a character is a whole number of pixels wide: crisp, and no drift. */
export function glyphSheet(ratio: number): GlyphSheet {
  const known = sheets.get(ratio);
  if (known) return known;
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  const family = getComputedStyle(document.documentElement).getPropertyValue('--mono') || 'monospace';
  context.font = `100px ${family}`;
  const widthPerPixel = context.measureText('M').width / 100;
  const advance = Math.max(4, Math.round(11.5 * ratio * widthPerPixel));
  const size = advance / widthPerPixel;
  const height = Math.ceil(size * 1.3);
  canvas.width = advance;
  canvas.height = height;
  context.font = `${size}px ${family}`;
  context.textBaseline = 'alphabetic';
  context.fillStyle = '#fff';
  const cache = new Map<number, Uint8Array>();
  const sheet: GlyphSheet = {
    advance,
    height,
    alphaOf: (code) => {
      const drawn = cache.get(code);
      if (drawn) return drawn;
      context.clearRect(0, 0, advance, height);
      context.fillText(String.fromCodePoint(code), 0, Math.round(size));
      const pixels = context.getImageData(0, 0, advance, height).data;
      const alpha = new Uint8Array(advance * height);
      for (let i = 0; i < alpha.length; i++) alpha[i] = pixels[i * 4 + 3]!;
      cache.set(code, alpha);
      return alpha;
    },
  };
  sheets.set(ratio, sheet);
  return sheet;
}

/** Blends `text` at (x, y); rows outside the buffer are skipped. */
export function blendText(buffer: Uint32Array, width: number, height: number, sheet: GlyphSheet, text: string, x: number, y: number, colour: number): void {
  const red = colour & 255;
  const green = (colour >> 8) & 255;
  const blue = (colour >> 16) & 255;
  const firstLine = Math.max(0, -y);
  const lastLine = Math.min(sheet.height, height - y);
  for (let c = 0, left = x; c < text.length; c++, left += sheet.advance) {
    const code = text.charCodeAt(c);
    if (code === 32) continue;
    const alpha = sheet.alphaOf(code);
    for (let line = firstLine; line < lastLine; line++) {
      let at = (y + line) * width + left;
      let from = line * sheet.advance;
      for (let column = 0; column < sheet.advance; column++, at++, from++) {
        const strength = alpha[from]!;
        if (strength === 0) continue;
        const under = buffer[at]!;
        const r = under & 255;
        const g = (under >> 8) & 255;
        const b = (under >> 16) & 255;
        buffer[at] =
          ((255 << 24) | ((b + (((blue - b) * strength) >> 8)) << 16) | ((g + (((green - g) * strength) >> 8)) << 8) | (r + (((red - r) * strength) >> 8))) >>> 0;
      }
    }
  }
}
