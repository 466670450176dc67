import { hrefOf, usePageLocation } from '../location/urlState';
import { toggleTheme, useTheme } from '../theme/theme';
import { TimeRangePicker } from './TimeRangePicker';

const VIEWS: readonly [path: string, label: string][] = [
  ['services', 'Services'],
  ['traces', 'Traces'],
  ['profiles', 'Profiles'],
  ['compare', 'Compare'],
  ['explain', 'Explain'],
  ['status', 'Status'],
];

export function NavBar({ showKeys }: { showKeys: () => void }) {
  const { path, params } = usePageLocation();
  const theme = useTheme();
  const here = path[0] === 'trace' ? 'traces' : (path[0] ?? 'services');
  return (
    <header className="nav">
      <a className="brand" href={hrefOf(['services'])}>
        hotspan
      </a>
      <nav aria-label="Views" className="grow">
        {VIEWS.map(([view, label]) => (
          <a key={view} href={hrefOf([view])} aria-current={here === view ? 'page' : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {params.service && (
        <span className="row" style={{ gap: 4 }}>
          <span className="muted">service</span> <b>{params.service}</b>
          <a aria-label="All services" title="All services" href={hrefOf([...path], { ...params, service: null })}>
            ×
          </a>
        </span>
      )}
      <TimeRangePicker />
      <button title="All keys" onClick={showKeys}>
        <kbd>?</kbd> keys
      </button>
      <button title={`Switch to ${theme === 'light' ? 'dark' : 'light'}  t`} aria-label="Switch theme" onClick={toggleTheme}>
        ◐
      </button>
    </header>
  );
}
