'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const graph = document.getElementById('graph');
  const axis = document.getElementById('axis');
  const readout = document.getElementById('readout');
  const find = document.getElementById('find');
  const found = document.getElementById('found');
  const idle = document.getElementById('idle');
  const side = document.getElementById('side');
  const sides = [graph.dataset.side0, graph.dataset.side1].filter(s => s !== undefined);
  const differs = sides.length === 2;
  const row = 20, least = 2; // pixels
  const NAME = 0, KERNEL = 1, TIME = 2, CHILDREN = 4;

  // Nodes as objects, with their parents: what is zoomed into is shown below all that called it.
  const open = (packed, parent) => {
    const n = { name: data.names[packed[NAME]], kernel: packed[KERNEL] === 1, time: [packed[TIME], packed[TIME + 1]], parent };
    n.children = (packed[CHILDREN] || []).map(c => open(c, n));
    n.idle = parent ? parent.idle || (!parent.parent && (n.name === 'idle' || n.name === 'rest of the machine')) : false;
    return n;
  };
  const root = open(data.root, null);
  let zoomed = root;

  const shown = () => (differs ? Number(side.value) : 0);
  // The time of a node, without idle time where that is hidden.
  const time = (n, s) => {
    if (idle.checked || n.idle) return n.time[s];
    return n === root ? n.time[s] - n.children.filter(c => c.idle).reduce((sum, c) => sum + c.time[s], 0) : n.time[s];
  };
  const children = n => n.children.filter(c => idle.checked || !c.idle);

  const text = ns => {
    const a = Math.abs(ns);
    const digits = v => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));
    return a >= 1e9 ? digits(ns / 1e9) + ' s' : a >= 1e6 ? digits(ns / 1e6) + ' ms' : a >= 1e3 ? digits(ns / 1e3) + ' µs' : digits(ns) + ' ns';
  };
  // A round time, without the digits that measured ones have.
  const round = ns => {
    const [size, unit] = ns >= 1e9 ? [1e9, ' s'] : ns >= 1e6 ? [1e6, ' ms'] : ns >= 1e3 ? [1e3, ' µs'] : [1, ' ns'];
    return Number((ns / size).toPrecision(4)) + unit;
  };
  // The time of a node without that of what it calls.
  const own = (n, s) => n.time[s] - n.children.reduce((sum, c) => sum + c.time[s], 0);
  const changes = n => [Math.abs(own(n, 1) - own(n, 0)), ...n.children.filter(c => !c.idle).flatMap(changes)];
  const scale = differs ? Math.max(1e-9, ...changes(root)) : 1;
  const darkest = document.getElementById('darkest');
  if (darkest && scale > 1e-9) darkest.textContent = `, the darkest ${text(scale)}; shades grow with the square root`;
  const colour = n => {
    if (n.idle) return '#d5d9df';
    if (!differs) return n === root ? '#e8e3d8' : n.kernel ? '#ffc78f' : '#a8d3f5';
    // A function is coloured by its own time: what it calls has colours of its own.
    const change = own(n, 1) - own(n, 0);
    const strength = Math.min(1, Math.sqrt(Math.abs(change) / scale));
    const mix = (from, to) => Math.round(from + (to - from) * strength);
    return change >= 0 ? `rgb(${mix(240, 255)},${mix(238, 130)},${mix(234, 90)})` : `rgb(${mix(240, 92)},${mix(238, 178)},${mix(234, 236)})`;
  };
  const describe = n => {
    const total = time(root, shown());
    const share = total > 0 ? ` (${(100 * time(n, shown()) / total).toFixed(1)}%)` : '';
    const kind = n.kernel ? ', kernel' : '';
    const unit = ` for each ${graph.dataset.unit}`;
    if (!differs) return `${n.name}${kind}: ${text(time(n, 0))}${unit}${share}`;
    const change = time(n, 1) - time(n, 0);
    return `${n.name}${kind}: ${sides[1]} ${text(time(n, 1))}, ${sides[0]} ${text(time(n, 0))}, difference ${change >= 0 ? '+' : ''}${text(change)}, of its own ${own(n, 1) - own(n, 0) >= 0 ? '+' : ''}${text(own(n, 1) - own(n, 0))}${unit}${share}`;
  };

  const place = (n, left, width, depth, wanted, above) => {
    const b = document.createElement('button');
    b.type = 'button';
    // In shares of the width, so that the graph fits paper too.
    b.style.left = 100 * left / graph.clientWidth + '%';
    b.style.width = 100 * Math.max(width - 0.5, 0.5) / graph.clientWidth + '%';
    b.style.top = depth * row + 'px';
    b.style.background = colour(n);
    b.textContent = width > 24 ? n.name : '';
    b.title = b.ariaLabel = describe(n);
    if (above) b.classList.add('above');
    if (wanted && n.name.toLowerCase().includes(wanted)) b.classList.add('hit');
    n.button = b;
    b.addEventListener('click', () => { zoomed = n; draw(); n.button.focus(); });
    const read = () => { readout.textContent = describe(n); };
    b.addEventListener('pointerenter', read);
    b.addEventListener('focus', read);
    graph.append(b);
  };

  // Round times along the width that a time fills: 1, 2 or 5 times a power of ten apart.
  const ruler = (whole, width) => {
    axis.replaceChildren();
    const put = (what, left, name) => {
      const s = document.createElement('span');
      s.textContent = what;
      s.style.left = left + '%';
      if (name) s.className = 'name';
      axis.append(s);
    };
    put(`processor time for each ${graph.dataset.unit}`, 0, true);
    if (!(whole > 0)) return;
    const most = Math.max(2, Math.min(8, Math.floor(width / 60)));
    let step = 10 ** Math.floor(Math.log10(whole / most));
    step *= [1, 2, 5, 10].find(t => whole <= t * step * most * (1 + 1e-9));
    for (let i = 0; i * step * width / whole < width - 48; i++) put(i === 0 ? '0' : round(i * step), 100 * i * step / whole);
  };

  const draw = () => {
    graph.replaceChildren();
    const wanted = find.value.trim().toLowerCase();
    const s = shown(), width = graph.clientWidth;
    let depth = 0, deepest = 0;
    const above = [];
    for (let n = zoomed.parent; n; n = n.parent) above.unshift(n);
    for (const n of above) place(n, 0, width, depth++, wanted, true);
    const spread = (n, left, scale, depth) => {
      const w = time(n, s) * scale;
      if (w < least) return;
      deepest = Math.max(deepest, depth);
      place(n, left, w, depth, wanted, false);
      for (const c of children(n)) {
        spread(c, left, scale, depth + 1);
        left += time(c, s) * scale;
      }
    };
    const whole = time(zoomed, s);
    ruler(whole, width);
    if (whole > 0) spread(zoomed, 0, width / whole, depth);
    graph.style.height = (Math.max(deepest, depth) + 1) * row + 'px';
    found.textContent = wanted ? matched(wanted, s) : '';
  };
  // How much time is in what matches, each stack once.
  const matched = (wanted, s) => {
    const sum = n => (n.name.toLowerCase().includes(wanted) ? time(n, s) : children(n).reduce((t, c) => t + sum(c), 0));
    const total = time(root, s), hit = sum(root);
    return hit > 0 ? `${text(hit)}, ${(100 * hit / total).toFixed(1)}%` : 'nowhere';
  };

  find.addEventListener('input', draw);
  idle.addEventListener('change', () => { zoomed = root; draw(); });
  if (side) side.addEventListener('change', draw);
  document.getElementById('reset').addEventListener('click', () => { zoomed = root; find.value = ''; draw(); });
  document.addEventListener('keydown', e => {
    if (e.key === 'Escape') { zoomed = root; draw(); }
  });
  new ResizeObserver(draw).observe(graph.parentElement);
  draw();
  document.documentElement.dataset.ready = 'true';
})();
