(function () {
  // The picture may be a part of a page.
  var svg = document.getElementById('bars').ownerSVGElement, bars = Array.prototype.slice.call(document.querySelectorAll('#bars>g'));
  var full = parseFloat(svg.getAttribute('width')) - 20, note = document.getElementById('note'), said = note.textContent;
  function number(bar, key) { return parseFloat(bar.getAttribute('data-' + key)); }
  function name(bar) { return bar.firstChild.textContent.split('\n')[0]; }
  function row(bar) { return parseFloat(bar.childNodes[1].getAttribute('y')); }
  function place(bar, x, w) {
    var rect = bar.childNodes[1], text = bar.childNodes[2], room = Math.floor((w - 6) / 7.2), label = name(bar);
    rect.setAttribute('x', x); rect.setAttribute('width', Math.max(w, 0)); text.setAttribute('x', x + 3);
    text.textContent = room < 3 ? '' : label.length <= room ? label : label.slice(0, room - 1) + '…';
  }
  // Callers of the chosen bar span the whole width, its callees share it, everything else is hidden.
  function zoom(target) {
    var from = number(target, 'x'), width = number(target, 'w'), end = from + width, depth = row(target);
    bars.forEach(function (bar) {
      var x = number(bar, 'x'), w = number(bar, 'w'), caller = row(bar) <= depth && x <= from + 0.02 && x + w >= end - 0.02;
      var inside = row(bar) > depth && x >= from - 0.02 && x + w <= end + 0.02;
      bar.style.display = caller || inside ? '' : 'none';
      bar.classList.toggle('dim', caller && bar !== target);
      if (caller) place(bar, 10, full); else if (inside) place(bar, 10 + (x - from) * full / width, w * full / width);
    });
  }
  function search(text) {
    var pattern = null, covered = 0, until = -1;
    if (text) try { pattern = new RegExp(text); } catch (e) { pattern = { test: function (s) { return s.indexOf(text) >= 0; } }; }
    var hits = bars.filter(function (bar) {
      var hit = !!pattern && pattern.test(name(bar));
      bar.classList.toggle('hit', hit);
      return hit;
    });
    // Bars inside bars already counted add nothing.
    hits.sort(function (a, b) { return number(a, 'x') - number(b, 'x') || number(b, 'w') - number(a, 'w'); });
    hits.forEach(function (bar) {
      var x = number(bar, 'x'), w = number(bar, 'w');
      if (x + w > until + 0.02) { covered += x + w - Math.max(x, until); until = x + w; }
    });
    note.textContent = pattern ? hits.length + ' found, ' + (100 * covered / full).toFixed(2) + '% of all' : said;
  }
  function ask() { var text = prompt('Find functions (regular expression)', ''); if (text !== null) search(text); }
  bars.forEach(function (bar) { bar.addEventListener('click', function () { zoom(bar); }); });
  document.getElementById('reset').addEventListener('click', function () { search(''); if (bars[0]) zoom(bars[0]); });
  document.getElementById('search').addEventListener('click', ask);
  window.addEventListener('keydown', function (event) {
    if (event.key === '/' || (event.key === 'f' && event.ctrlKey)) { event.preventDefault(); ask(); }
    if (event.key === 'Escape') { search(''); if (bars[0]) zoom(bars[0]); }
  });
})();
