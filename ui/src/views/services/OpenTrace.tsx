import { useState } from 'react';
import { hrefOf, openView } from '../../location/urlState';

/** A way on where services cannot be listed. */
export function OpenTrace() {
  const [id, setId] = useState('');
  return (
    <form
      className="notice row"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim()) openView(['trace', id.trim().toLowerCase()]);
      }}
    >
      <label>
        Open a trace by id <input type="text" className="mono" style={{ width: 300 }} value={id} onChange={(event) => setId(event.target.value)} />
      </label>
      <button className="primary">Open</button>
      <span className="muted">
        or look at <a href={hrefOf(['traces'])}>traces</a>, <a href={hrefOf(['profiles'])}>profiles</a>, <a href={hrefOf(['status'])}>status</a>.
      </span>
    </form>
  );
}
