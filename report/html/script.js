'use strict';
// What the page does beyond being read: filters, a theme, and readouts in charts. Without
// it nothing is missing but these.
(() => {
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.documentElement;
  const theme = document.getElementById('theme');
  document.getElementById('tools').hidden = theme.hidden = false;

  // The theme follows the system until it is chosen here.
  theme.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });

  // Filters hide what is of another workload or placement, and choose the metric of the forest plots.
  const chosen = { rank: '', as: 'change', against: '', request: '2ms', calls: '8', load: '', placement: '', metric: '', find: '', networks: [] };
  const settings = $$('[data-placement]');
  const words = new Map(settings.map((e) => [e, '']));

  function fits(e) {
    if (chosen.load && e.dataset.load !== undefined && e.dataset.load !== chosen.load) return false;
    if (chosen.placement && e.dataset.placement !== chosen.placement) return false;
    if (!chosen.find || e.dataset.load === undefined) return true;
    if (!words.get(e)) words.set(e, (e.querySelector('summary, th, a') || e).textContent.toLowerCase());
    return chosen.find.split(/\s+/).every((w) => words.get(e).includes(w));
  }

  function apply() {
    for (const e of settings) e.hidden = !fits(e);
    for (const s of $$('.setting')) {
      const forests = $$('.forest', s);
      let shown = 0;
      forests.forEach((f, i) => {
        f.hidden = chosen.metric ? f.dataset.metric !== chosen.metric : i !== 0;
        if (!f.hidden) shown++;
      });
      const none = s.querySelector('.nometric');
      if (none) none.hidden = shown > 0 || forests.length === 0;
      // The sentence is about the headline.
      for (const e of $$('.says', s)) e.hidden = forests.length > 0 && forests[0].hidden;
    }
    for (const b of $$('[data-filter] button')) {
      b.setAttribute('aria-pressed', String(b.dataset.value === chosen[b.parentElement.dataset.filter]));
    }
    seen.draw();
  }
  const seen = view($$, chosen, apply);

  for (const group of $$('[data-filter]')) {
    group.addEventListener('click', (event) => {
      const button = event.target.closest('button');
      if (!button) return;
      chosen[group.dataset.filter] = button.dataset.value;
      apply();
    });
  }
  const find = document.getElementById('find');
  if (find) {
    find.addEventListener('input', () => {
      chosen.find = find.value.trim().toLowerCase();
      apply();
    });
  }

  // What is folded in a large page is in a noscript element: without scripts it is there as it stands, with them it is read
  // only when it is unfolded. It is the page's own markup, escaped when it was written.
  function fill(details) {
    const kept = details.querySelector(':scope > noscript');
    if (!kept) return;
    kept.insertAdjacentHTML('afterend', kept.textContent);
    kept.remove();
    $$('.plot', details).forEach(wire);
    seen.sortable(details);
    apply();
  }
  for (const d of $$('details')) if (d.querySelector(':scope > noscript')) d.addEventListener('toggle', () => fill(d));

  // A link to something folded unfolds it.
  function unfold() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let e = target; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
  }
  addEventListener('hashchange', unfold);
  unfold();

  // Readouts: what each curve says at one place of the horizontal axis. The figures are read off the curves themselves.
  const readout = document.getElementById('readout');
  const curves = new WeakMap();

  function curvesOf(plot) {
    if (!curves.has(plot)) {
      curves.set(plot, $$('.ln', plot).map((path) => ({
        path,
        name: path.dataset.n,
        points: (path.getAttribute('d').match(/[ML][^ML]+/g) || []).map((p) => p.slice(1).split(' ').map(Number)),
      })));
    }
    return curves.get(plot);
  }

  function scaled(value, units) {
    for (const [size, name] of units) {
      if (Math.abs(value) >= 0.9995 * size) return `${Number((value / size).toPrecision(3))} ${name}`;
    }
    return `${Number(value.toPrecision(3))} ${units[units.length - 1][1]}`;
  }

  function valueText(value, unit) {
    if (unit === 'ns') return scaled(value, [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);
    if (unit === 'bit/s') return scaled(value, [[1e12, 'Tbit/s'], [1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s'], [1, 'bit/s']]);
    if (unit === 'ratio') return `${Number((100 * value).toPrecision(3))}%`;
    return `${Number(value.toPrecision(3))} ${unit}`;
  }

  function changeText(ratio) {
    if (ratio >= 3) return `×${Number(ratio.toPrecision(3))}`;
    const percent = 100 * (ratio - 1);
    return `${percent > 0 ? '+' : ''}${percent.toFixed(Math.abs(percent) < 10 ? 1 : 0)}%`;
  }

  function read(plot, share) {
    const d = plot.dataset;
    const height = Number(plot.getAttribute('height'));
    const [x0, x1, y0, y1] = [d.x0, d.x1, d.y0, d.y1].map(Number);
    const rows = [];
    for (const c of curvesOf(plot)) {
      if (c.path.matches('.rest')) continue;
      const near = c.points.reduce((a, b) => (Math.abs(b[0] - 1000 * share) < Math.abs(a[0] - 1000 * share) ? b : a), c.points[0]);
      if (!near) continue;
      const up = 1 - near[1] / height;
      const value = d.log === 'true' ? y0 * (y1 / y0) ** up : y0 + (y1 - y0) * up;
      rows.push({ ...c, value, text: d.kind === 'changes' ? changeText(value) : valueText(value, d.unit) });
    }
    rows.sort((a, b) => b.value - a.value);
    const x = x0 + (x1 - x0) * share;
    let title = `${x.toFixed(1)} s into the run`;
    if (d.kind === 'quantiles') {
      const percent = 100 - 10 ** (2 - x);
      title = x < 0.005 ? 'fastest' : `p${Number(percent.toFixed(percent > 99.9 ? 3 : percent > 99 ? 2 : 1))}`;
    }
    return { title, rows };
  }

  function show(plot, share, left, top) {
    const { title, rows } = read(plot, share);
    if (rows.length === 0) return;
    readout.replaceChildren();
    const head = document.createElement('b');
    head.textContent = title;
    readout.append(head);
    for (const r of rows) {
      const line = document.createElement('span');
      const name = document.createElement('i');
      name.className = r.path.getAttribute('class').replace('ln ', '');
      name.textContent = r.name;
      line.append(name, r.text);
      readout.append(line);
    }
    readout.hidden = false;
    const box = readout.getBoundingClientRect();
    readout.style.left = `${Math.max(8, Math.min(left + 16, innerWidth - box.width - 8))}px`;
    readout.style.top = `${Math.max(8, Math.min(top + 16, innerHeight - box.height - 8))}px`;
    hair(plot, share);
  }

  function hair(plot, share) {
    let line = plot.querySelector('.hair');
    if (!line) {
      line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
      line.setAttribute('class', 'hair');
      line.setAttribute('y2', plot.getAttribute('height'));
      plot.append(line);
    }
    line.setAttribute('x1', `${100 * share}%`);
    line.setAttribute('x2', `${100 * share}%`);
  }

  function hide(plot) {
    readout.hidden = true;
    const line = plot.querySelector('.hair');
    if (line) line.remove();
  }

  // A chart with many curves draws six. Buttons choose others, each in place of the one that was chosen longest ago, but for the first.
  function choosable(plot) {
    if (!plot.querySelector('.ln.rest')) return;
    const most = 6;
    const names = $$('.ln', plot).map((e) => e.dataset.n);
    let drawn = $$('.ln:not(.rest)', plot).map((e) => e.dataset.n);
    const row = document.createElement('p');
    row.className = 'chips curves';
    row.setAttribute('role', 'group');
    row.setAttribute('aria-label', 'Curves');
    const label = document.createElement('span');
    label.className = 'filter-name';
    label.textContent = 'Curves';
    const buttons = names.map((name) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.addEventListener('click', () => {
        if (drawn.includes(name)) drawn = drawn.filter((n) => n !== name);
        else drawn = [...(drawn.length < most ? drawn : drawn.toSpliced(1, 1)), name];
        draw();
      });
      return button;
    });
    row.append(label, ...buttons);
    function draw() {
      for (const b of buttons) b.setAttribute('aria-pressed', String(drawn.includes(b.textContent)));
      for (const e of $$('[data-n]', plot)) e.classList.toggle('rest', !drawn.includes(e.dataset.n));
      placeLabels($$('.end:not(.rest)', plot), Number(plot.getAttribute('height')));
    }
    draw();
    const figure = plot.closest('figure');
    figure.querySelector('figcaption').before(row);
    for (const e of $$('.undrawn', figure)) e.remove();
  }

  // Labels stand where their curves end, or as near to that as they have room one below the other.
  function placeLabels(labels, height) {
    const room = 15;
    const all = labels.map((e) => {
      const [leader, text] = e.children;
      return { leader, text, end: Number(leader.getAttribute('d').match(/ (.*)L/)[1]) };
    }).sort((a, b) => a.end - b.end);
    let last = -Infinity;
    for (const l of all) last = l.at = Math.max(l.end, last + room);
    last = height + room / 2;
    for (const l of all.toReversed()) last = l.at = Math.min(l.at, last - room);
    for (const l of all) {
      l.leader.setAttribute('d', `M2 ${l.end}L10 ${l.at.toFixed(1)}`);
      l.text.setAttribute('y', (l.at + 4).toFixed(1));
    }
  }

  function wire(plot) {
    choosable(plot);
    let share = 0.5;
    plot.addEventListener('pointermove', (event) => {
      const box = plot.getBoundingClientRect();
      share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      show(plot, share, event.clientX, event.clientY);
    });
    plot.addEventListener('pointerleave', () => hide(plot));
    plot.addEventListener('blur', () => hide(plot));
    plot.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
      if (event.key === 'Escape') hide(plot);
      if (!by) return;
      event.preventDefault();
      share = Math.min(1, Math.max(0, share + by));
      const box = plot.getBoundingClientRect();
      show(plot, share, box.left + share * box.width, box.top);
    });
  }

  addEventListener('scroll', () => { readout.hidden = true; }, { passive: true });

  $$('.plot').forEach(wire);
  seen.sortable(document);
  seen.recall();
  if (find) find.value = chosen.find;
  apply();
  root.dataset.ready = 'true';
})();
