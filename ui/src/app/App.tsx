import { type ReactNode, useState } from 'react';
import { useIsWaiting } from '../api/inFlight';
import { useKeys } from '../keys/keyLayer';
import { shiftRange } from '../location/timeRange';
import { setRange, useTimeRange } from '../location/useTimeRange';
import { goBack, openView, usePageLocation } from '../location/urlState';
import { toggleTheme } from '../theme/theme';
import { KeysOverlay } from './KeysOverlay';
import { NavBar } from './NavBar';
import { useView } from './viewLoading';
import { Empty } from './Waiting';

/** Only the frame is drawn again when an answer comes or goes, not what stands in it. */
function BusyMain({ children }: { children: ReactNode }) {
  return (
    <main className="view" aria-busy={useIsWaiting()}>
      {children}
    </main>
  );
}

export function App() {
  const { path } = usePageLocation();
  const { range } = useTimeRange();
  const name = path[0] ?? 'services';
  const View = useView(name);
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
      <BusyMain>
        {View && View !== 'absent' && <View key={name === 'trace' ? path[1] : name} traceId={path[1] ?? ''} />}
        {View === 'absent' && (
          <Empty title="This part of the page could not be read">
            <p>The server does not answer, or has been updated since the page was opened.</p>
            <button className="primary" onClick={() => location.reload()}>
              Reload the page
            </button>
          </Empty>
        )}
        {View === undefined && (
          <Empty title="There is no such page">
            <p>
              <a href="#/services">Services</a> is where to start.
            </p>
          </Empty>
        )}
      </BusyMain>
      {keysShown && <KeysOverlay close={() => setKeysShown(false)} />}
    </div>
  );
}
