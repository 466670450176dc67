import './theme/tokens.css';
import './theme/base.css';
import { createRoot } from 'react-dom/client';
import { App } from './app/App';
import { preloadView } from './app/viewLoading';
import { currentLocation } from './location/urlState';

preloadView(currentLocation().path[0] ?? 'services');
createRoot(document.getElementById('root')!).render(<App />);
