/** A small plot in a table cell. Zero is the floor; each is as high as its own highest value, so shapes compare and heights don't. */
export function Spark({ values, label, colour = 'var(--accent)', width = 56, height = 18 }: { values: readonly (number | null)[] | undefined; label: string; colour?: string; width?: number; height?: number }) {
  const known = (values ?? []).filter((value): value is number => value !== null);
  if (!values || known.length < 2) return null;
  const highest = Math.max(...known, 1e-12);
  let pen = 'M';
  const path = values
    .map((value, index) => {
      if (value === null) {
        pen = 'M';
        return '';
      }
      const point = `${pen}${((index / (values.length - 1)) * (width - 2) + 1).toFixed(1)} ${(height - 2 - (value / highest) * (height - 4)).toFixed(1)}`;
      pen = 'L';
      return point;
    })
    .join('');
  return (
    <svg width={width} height={height} role="img" aria-label={label} style={{ verticalAlign: 'middle' }}>
      <path d={path} fill="none" stroke={colour} strokeWidth={1.25} />
    </svg>
  );
}
