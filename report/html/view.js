// What is seen of the figures: which setting's ranking, which networks, in which order; kept in the address, and saved as a file.
function view($$, chosen, apply) {
  const rankings = $$('.ranking');
  const chips = document.querySelector('.chips');
  const choice = document.getElementById('rank'); // in place of chips, where there are many settings

  // The network of a row.
  function nameOf(row) {
    const head = row.querySelector('th');
    return (head.querySelector('b') || head).textContent;
  }

  // The rows of a ranking that are networks.
  const rowsOf = (table) => [...table.rows].filter((r) => r.cells.length > 1 && r.parentElement !== table.tHead);

  // One setting's ranking is shown; without scripts all are.
  function rank() {
    if (!document.getElementById(`rank-${chosen.rank}`)) chosen.rank = rankings.length ? rankings[0].id.slice(5) : '';
    for (const r of rankings) r.hidden = r.id !== `rank-${chosen.rank}`;
    answer();
    for (const b of $$('[data-rank]')) b.setAttribute('aria-pressed', String(b.dataset.rank === chosen.rank));
    for (const b of $$('[data-as]')) b.setAttribute('aria-pressed', String(b.dataset.as === chosen.as));
    if (choice) choice.value = chosen.rank;
    if (against) against.value = chosen.against;
    for (const r of rankings) if (!r.hidden) otherwise(r);
  }

  // The headline is the sentence of the setting that is shown. Those of the other settings that the answer is about follow, smaller.
  const answers = $$('.answer[data-says]');
  function answer() {
    const head = answers.find((e) => e.dataset.says === chosen.rank);
    for (const e of answers) {
      e.classList.toggle('also', e !== head);
      e.hidden = e !== head && !('answered' in e.dataset);
    }
    if (head) head.parentElement.replaceChildren(head, ...answers.filter((e) => e !== head));
  }

  // A ranking is drawn in another quantity, or against another network, as far as the record has that.
  const data = document.getElementById('pictures');
  const pictures = data ? JSON.parse(data.textContent) : [];
  const says = document.getElementById('bar-says');
  const first = new Map(rankings.map((r) => [r, { head: r.tHead, bodies: [...r.tBodies] }]));
  const saysFirst = says && [...says.childNodes];
  const against = document.getElementById('against');

  function svg(tag, attributes) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    return e;
  }

  // The arrows at an end of the axis: at its beginning, where the sign is 1, or at its end.
  function arrows(n, sign) {
    return Array.from({ length: n }, (_, i) => svg('path', { class: 'go', d: `M${sign * (7 + 8 * i)} 10l${-7 * sign} 5l${7 * sign} 5z` }));
  }

  // One row of a picture, after the pattern of a row that is there; group and users are those of the network's own.
  function barOf(shape, picture, own, pattern) {
    const r = (own || pattern).cloneNode(true);
    r.className = `v-${shape.class}`;
    if (!own) {
      r.cells[0].textContent = '';
      r.cells[1].removeAttribute('title');
      r.cells[1].querySelector('b').textContent = shape.name;
      for (const e of r.cells[1].querySelectorAll('.uses')) e.remove();
    }
    const open = picture.as !== 'value' && shape.class === 'unresolved';
    const end = svg('svg', { x: '100%', class: 'labels' });
    end.append(...arrows(shape.after || 0, -1));
    r.querySelector('.fp').replaceChildren(svg('use', { href: `#${picture.axis}` }),
      svg('rect', { class: open ? 'br open' : 'br', x: shape.x, width: shape.width, y: 8, height: 14, rx: 2 }),
      ...(shape.whisker ? [svg('line', { class: 'wh', x1: shape.whisker[0], x2: shape.whisker[1] })] : []), ...arrows(shape.before || 0, 1), end);
    shape.texts.forEach((text, i) => { r.cells[3 + i].textContent = text; });
    return r;
  }

  // The rows of a picture below their headings. A letter is shown where the row above has another.
  function bodiesOf(picture, own, pattern) {
    const bodies = [document.createElement('tbody')];
    let above = '';
    for (const shape of picture.rows) {
      if (shape.heading) {
        const head = document.createElement('th');
        [head.colSpan, head.scope, head.textContent] = [6, 'rowgroup', shape.heading];
        const body = document.createElement('tbody');
        body.insertRow().append(head);
        body.rows[0].className = 'heading';
        bodies.push(body);
        above = '';
      }
      const row = barOf(shape, picture, own.get(shape.name), pattern);
      const group = row.cells[0].textContent;
      row.classList.toggle('first', !group || group !== above);
      above = group;
      bodies[bodies.length - 1].append(row);
    }
    return bodies;
  }

  // The picture that was chosen, undefined where the record has none, and what it can't show.
  function pictureOf(setting) {
    const find = (as, to) => pictures.find((p) => p.of === setting && p.as === as && (as === 'value' || p.against === to));
    const base = against.options[0].textContent;
    if (!chosen.against || chosen.as === 'value') return [find(chosen.as, base), 'The record has nothing else of this setting. '];
    const direct = find('change', chosen.against);
    if (!direct) return [undefined, `The record does not hold ${chosen.against} against the others in this setting. `];
    return [direct, chosen.as === 'added' ? 'How two networks differ is in the record in percent alone, so that is shown. ' : ''];
  }

  function otherwise(table) {
    const { head, bodies } = first.get(table);
    table.classList.toggle('long', chosen.as === 'added');
    const draw = (newHead, newBodies) => {
      table.replaceChild(newHead, table.tHead);
      for (const body of [...table.tBodies]) body.remove();
      table.append(...newBodies);
    };
    draw(head, bodies);
    if (!says) return;
    says.replaceChildren(...saysFirst);
    if (!against || (chosen.as === 'change' && !chosen.against)) return;
    const [picture, lacks] = pictureOf(table.id.slice(5));
    if (!picture) {
      says.prepend(lacks);
      return;
    }
    says.textContent = (chosen.against && chosen.as === 'added' ? lacks : '') + picture.says;
    const newHead = head.cloneNode(true);
    const cells = newHead.rows[0].cells;
    cells[2].querySelector('use').setAttribute('href', `#${picture.axis}h`);
    picture.heads.forEach((text, i) => { cells[3 + i].textContent = text; });
    const rows = rowsOf(table);
    draw(newHead, bodiesOf(picture, new Map(rows.map((r) => [nameOf(r), r])), rows[0]));
  }

  // The networks that were chosen stand out: all others fade.
  function isolate() {
    const names = chosen.networks;
    for (const b of $$('[data-networks] button')) b.setAttribute('aria-pressed', String(names.includes(b.dataset.value)));
    const fade = (e, name) => e.classList.toggle('faded', names.length > 0 && !names.includes(name));
    for (const e of $$('[data-n]')) fade(e, e.dataset.n);
    for (const r of $$('.forest tbody tr, .ranking tbody tr:not(.heading), .cpu tbody tr')) fade(r, nameOf(r));
  }

  // Columns sort the rows below the null check, which stays first: by name, or by the number that a cell begins with.
  function sort(table, column, down) {
    const rows = [...table.tBodies[0].rows].filter((r) => !r.matches('.v-null, .v-nullfailed'));
    const key = (r) => {
      const text = r.cells[column].textContent;
      return column === 0 ? text : Number((text.match(/[+-]?\d[\d.]*/) || [Infinity])[0]);
    };
    rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (down ? -1 : 1));
    table.tBodies[0].append(...rows);
  }

  // What is added and the value follow the change, so only it and the name sort a table of deltas.
  const heads = '.forest th:nth-child(-n+2), .matrix thead th, .glance thead th';
  function sortable(within) {
    for (const head of $$(heads, within)) {
      if (!head.matches('thead th') || head.querySelector('.sort')) continue;
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'sort';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        for (const h of head.parentElement.cells) h.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        sort(head.closest('table'), head.cellIndex, down);
      });
    }
  }

  // The address says what is seen, so that it can be sent to somebody.
  const names = ['rank', 'as', 'against', 'request', 'calls', 'load', 'placement', 'metric', 'find'];
  const usual = { as: 'change', request: '2ms', calls: '8' };
  function keep() {
    const seen = new URLSearchParams();
    for (const n of names) if (chosen[n] && chosen[n] !== usual[n] && !(n === 'rank' && rankings[0].id === `rank-${chosen.rank}`)) seen.set(n, chosen[n]);
    for (const n of chosen.networks) seen.append('network', n);
    const text = String(seen);
    if (text || location.hash.startsWith('#?')) history.replaceState(null, '', text ? `#?${text}` : location.pathname + location.search);
  }

  function recall() {
    if (!location.hash.startsWith('#?')) return;
    const seen = new URLSearchParams(location.hash.slice(2));
    for (const n of names) chosen[n] = seen.get(n) || usual[n] || '';
    if (!['added', 'value'].includes(chosen.as)) chosen.as = 'change';
    if (!against || ![...against.options].some((o) => o.value === chosen.against)) chosen.against = '';
    chosen.networks = seen.getAll('network');
  }

  // Files are made here, of what is seen.
  function save(name, blob) {
    const link = document.createElement('a');
    link.download = name;
    link.href = URL.createObjectURL(blob);
    link.click();
    URL.revokeObjectURL(link.href);
  }

  const shown = () => rankings.find((r) => !r.hidden);

  function csv() {
    const quoted = (text) => `"${text.trim().replaceAll('"', '""')}"`;
    const lines = [shown().tHead.rows[0], ...rowsOf(shown())].map((r) => [...r.cells].filter((c, i) => i !== 2)
      .map((c) => quoted(c.tagName === 'TH' && c.scope === 'row' ? nameOf(r) : c.textContent)).join(','));
    save('ranking.csv', new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }));
  }

  function png() {
    const table = shown();
    const [width, row, top, left, right] = [1250, 30, 48, 450, 1010];
    const canvas = document.createElement('canvas');
    const rows = [...table.rows].slice(1);
    [canvas.width, canvas.height] = [2 * width, 2 * (top + row * rows.length + 12)];
    const c = canvas.getContext('2d');
    const style = (e) => getComputedStyle(e);
    c.scale(2, 2);
    c.fillStyle = style(document.querySelector('.panel')).backgroundColor;
    c.fillRect(0, 0, width, canvas.height);
    c.textBaseline = 'middle';
    const write = (text, x, y, colour, weight = 400, align = 'left') => {
      c.font = `${weight} 13px ${style(document.body).fontFamily}`;
      c.fillStyle = colour;
      c.textAlign = align;
      c.fillText(text, x, y);
    };
    const ink = style(table).color;
    write(`${table.dataset.title} · ${table.dataset.reference}`, 16, 24, ink, 700);
    const at = (text) => left + (right - left) * (parseFloat(text) / 100);
    rows.forEach((r, i) => {
      const y = top + row * i + row / 2;
      if (r.matches('.heading')) {
        write(r.textContent, 16, y, style(r.cells[0]).color);
        return;
      }
      const [bar, whisker] = [r.querySelector('.br'), r.querySelector('.wh')];
      write(r.cells[0].textContent, 16, y, style(r.cells[0]).color);
      write(nameOf(r), 52, y, ink, 650);
      const names = [...r.cells[1].querySelectorAll('.uses span')].map((e) => e.textContent);
      const after = 62 + c.measureText(nameOf(r)).width;
      while (names.length && after + c.measureText(names.join(', ')).width > left - 20) names.pop();
      write(names.join(', '), after, y, style(r.cells[0]).color);
      c.fillStyle = style(bar).stroke === 'none' ? style(bar).fill : style(bar).stroke;
      c.globalAlpha = bar.matches('.open') ? 0.4 : 1;
      c.fillRect(at(bar.getAttribute('x')), y - 7, Math.max(1, at(bar.getAttribute('width')) - left), 14);
      c.globalAlpha = 1;
      if (whisker) {
        c.fillStyle = ink;
        c.fillRect(at(whisker.getAttribute('x1')), y - 0.8, Math.max(1, at(whisker.getAttribute('x2')) - at(whisker.getAttribute('x1'))), 1.6);
      }
      const [low, high] = ['.fp > .go', '.labels .go'].map((ends) => r.querySelectorAll(ends).length);
      if (low) write('◂'.repeat(low), left - 4, y, ink, 400, 'right');
      if (high) write('▸'.repeat(high), right + 4, y, ink);
      write(r.cells[3].textContent, 1080, y, ink, 650, 'right');
      write(r.cells[4].textContent, 1234, y, style(r.cells[4]).color, 400, 'right');
    });
    canvas.toBlob((blob) => save('ranking.png', blob));
  }

  if (chips) {
    chips.hidden = rankings.length < 2;
    chips.addEventListener('click', (event) => {
      const button = event.target.closest('button');
      if (!button) return;
      chosen.rank = button.dataset.rank;
      apply();
    });
    if (choice) {
      choice.addEventListener('change', () => {
        chosen.rank = choice.value;
        apply();
      });
    }
    const bar = document.createElement('p');
    bar.className = 'keep';
    for (const [label, make] of [['CSV', csv], ['PNG', png]]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = label;
      button.title = `Save this ranking as ${label}`;
      button.addEventListener('click', make);
      bar.append(button);
    }
    (document.querySelector('.seen') || chips.parentElement).append(bar);
  }
  const seenBy = document.querySelector('.seen');
  if (seenBy) {
    seenBy.hidden = false;
    seenBy.addEventListener('click', (event) => {
      const button = event.target.closest('[data-as]');
      if (!button) return;
      chosen.as = button.dataset.as;
      apply();
    });
    against.addEventListener('change', () => {
      chosen.against = against.value;
      apply();
    });
  }
  for (const group of $$('[data-networks]')) {
    group.addEventListener('click', (event) => {
      const button = event.target.closest('button');
      if (!button) return;
      const name = button.dataset.value;
      chosen.networks = chosen.networks.includes(name) ? chosen.networks.filter((n) => n !== name) : [...chosen.networks, name];
      apply();
    });
  }
  const matters = request(chosen, apply);
  return { recall, sortable, draw() { rank(); matters(); isolate(); keep(); } };
}
