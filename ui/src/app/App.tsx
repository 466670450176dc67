import { lazy, type ReactNode, Suspense, useState } from 'react';
import { useKeys } from '../keys/keyLayer';
import { shiftRange } from '../location/timeRange';
import { setRange, useTimeRange } from '../location/useTimeRange';
import { goBack, openView, usePageLocation } from '../location/urlState';
import { toggleTheme } from '../theme/theme';
import { KeysOverlay } from './KeysOverlay';
import { NavBar } from './NavBar';
import { Empty } from './Waiting';

// Each view is its own file for the browser: the first screen does not wait for the others.
const ServicesView = lazy(() => import('../views/services/ServicesView'));
const TracesView = lazy(() => import('../views/traces/TracesView'));
const TraceView = lazy(() => import('../views/trace/TraceView'));
const ProfilesView = lazy(() => import('../views/profiles/ProfilesView'));
const CompareView = lazy(() => import('../views/compare/CompareView'));
const ExplainView = lazy(() => import('../views/explain/ExplainView'));
const StatusView = lazy(() => import('../views/status/StatusView'));

function viewOf(path: readonly string[]): ReactNode {
  switch (path[0]) {
    case undefined:
    case 'services':
      return <ServicesView />;
    case 'traces':
      return <TracesView />;
    case 'trace':
      return <TraceView key={path[1] ?? ''} traceId={path[1] ?? ''} />;
    case 'profiles':
      return <ProfilesView />;
    case 'compare':
      return <CompareView />;
    case 'explain':
      return <ExplainView />;
    case 'status':
      return <StatusView />;
    default:
      return (
        <Empty title="There is no such page">
          <p>
            <a href="#/services">Services</a> is where to start.
          </p>
        </Empty>
      );
  }
}

export function App() {
  const { path } = usePageLocation();
  const { range } = useTimeRange();
  const [keysShown, setKeysShown] = useState(false);
  useKeys('Everywhere', [
    { key: '?', does: 'all keys', run: () => setKeysShown(true) },
    { key: 't', does: 'light or dark', run: toggleTheme },
    { key: '[', does: 'earlier', run: () => setRange(shiftRange(range, -1, Date.now())) },
    { key: ']', does: 'later', run: () => setRange(shiftRange(range, 1, Date.now())) },
    { key: '/', does: 'question', run: () => (document.querySelector<HTMLElement>('[data-question]') ? document.querySelector<HTMLElement>('[data-question]')!.focus() : openView(['traces'])) },
    { key: 'Escape', does: 'back', run: goBack },
  ]);
  return (
    <div className="app">
      <NavBar showKeys={() => setKeysShown(true)} />
      <main className="view">
        <Suspense fallback={null}>{viewOf(path)}</Suspense>
      </main>
      {keysShown && <KeysOverlay close={() => setKeysShown(false)} />}
    </div>
  );
}
