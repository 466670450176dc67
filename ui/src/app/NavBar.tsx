import { formatFragment, hrefOf, usePageLocation } from '../location/urlState';
import { useTimeRange } from '../location/useTimeRange';
import { toggleTheme, useTheme } from '../theme/theme';
import { CopyButton } from './CopyButton';
import { ServicePicker } from './ServicePicker';
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
  const { resolved } = useTimeRange();
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
      <ServicePicker />
      <TimeRangePicker />
      <CopyButton
        label="Link"
        title="Copy a link to exactly this view, with the time range fixed"
        text={location.href.replace(/#.*$/, '') + formatFragment(path, { ...params, from: String(Math.floor(resolved.fromMs)), to: String(Math.ceil(resolved.toMs)) })}
      />
      <button title="All keys" onClick={showKeys}>
        <kbd>?</kbd> keys
      </button>
      <button title={`Switch to ${theme === 'light' ? 'dark' : 'light'}  t`} aria-label="Switch theme" onClick={toggleTheme}>
        ◐
      </button>
    </header>
  );
}
