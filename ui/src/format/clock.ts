// Times are shown in the viewer's zone, with UTC as the hover text.

const localTime = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const localDate = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

export function clockTime(milliseconds: number): string {
  return localTime.format(milliseconds);
}

export function dateAndTime(milliseconds: number): string {
  const sameDay = new Date(milliseconds).toDateString() === new Date().toDateString();
  return sameDay ? clockTime(milliseconds) : `${localDate.format(milliseconds)}, ${clockTime(milliseconds)}`;
}

export function utc(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().replace('T', ' ').replace('Z', '')} UTC`;
}

/** For tips, over which nothing can hover: both at once, where they differ. */
export function timeWithUtc(milliseconds: number): string {
  const isUtc = new Date(milliseconds).getTimezoneOffset() === 0;
  return isUtc ? dateAndTime(milliseconds) : `${dateAndTime(milliseconds)} (${utc(milliseconds).slice(11, 19)} UTC)`;
}

/** Nanoseconds since the epoch exceed a double's exact range; milliseconds do not. */
export function nanosTextToMillis(text: string): number {
  if (text.length <= 6) return 0;
  return Number(text.slice(0, -6)) + Number(text.slice(-6)) / 1e6;
}
