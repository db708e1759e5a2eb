// inspect.js is run in the page by the tests: it returns what is wrong with what is drawn, a sentence each.
(() => {
  const wrong = [];
  const say = (text) => { if (wrong.length < 40) wrong.push(text); };
  const shown = (e) => e.checkVisibility() && e.getClientRects().length > 0;
  const named = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute('class') || ''} "${(e.textContent || '').trim().slice(0, 40)}"`;

  const width = document.scrollingElement.scrollWidth;
  if (width > innerWidth) {
    say(`the page is ${width} px wide in a window of ${innerWidth}`);
    for (const e of document.querySelectorAll('body *')) {
      if (shown(e) && !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1) say(`${named(e)} reaches beyond the window`);
    }
  }

  // Marks: each kind of plot has something drawn that has a size, and a colour other than its ground.
  const count = {};
  const paper = getComputedStyle(document.querySelector('main > section')).backgroundColor;
  const mark = (kind, e, what, ink) => {
    count[kind] = (count[kind] || 0) + 1;
    if (!e) { say(`a ${kind} has no ${what}`); return; }
    const box = e.getBoundingClientRect();
    if (what !== 'name' && !(box.width > 0 && (box.height > 0 || what === 'interval'))) say(`the ${what} of a ${kind} is ${box.width} by ${box.height} px`);
    const colour = getComputedStyle(e)[ink];
    if (colour === 'none' || colour === paper || /^rgba\(.*, 0\)$/.test(colour)) say(`the ${what} of a ${kind} is painted ${colour} on ${paper}`);
  };
  for (const e of document.querySelectorAll('.fp')) if (shown(e)) {
    const cut = e.querySelectorAll('.go').length > 1; // its point lies beyond the axis
    const bar = e.querySelector('.br');
    if (bar) mark('ranked bar', bar, bar.matches('.open') ? 'interval' : 'bar', bar.matches('.open') ? 'stroke' : 'fill');
    else mark('forest row', e.querySelector(cut ? '.go' : '.pt'), cut ? 'arrow' : 'point', cut ? 'fill' : 'stroke');
  }
  for (const e of document.querySelectorAll('.axis')) if (shown(e)) mark('axis', document.querySelector(`${e.querySelector('use').getAttribute('href')} text`), 'name', 'fill');
  for (const e of document.querySelectorAll('.plot')) {
    if (!shown(e)) continue;
    const curves = [...e.querySelectorAll('.ln')];
    const long = curves.find((l) => l.getAttribute('d').includes('L'));
    if (long || !e.querySelector('.ds')) mark('chart', long, 'curve', 'stroke');
    for (const l of e.querySelectorAll('.ln')) if (!/\d/.test(l.getAttribute('d'))) say('a curve has no points');
  }
  for (const e of document.querySelectorAll('.way')) if (shown(e)) mark('drawing of a way', e.querySelector('.under'), 'middle', 'stroke');
  for (const e of document.querySelectorAll('.bars')) if (shown(e)) mark('bar', e.querySelector('rect'), 'part', 'fill');

  // Text: large enough to read, inside the window, and apart from its neighbours in a drawing.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || seen.has(e) || e.closest('script, style, title, desc') || !shown(e)) continue;
    seen.add(e);
    let size = parseFloat(getComputedStyle(e).fontSize);
    const svg = e.closest('svg.way');
    if (svg) size *= svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    if (size < 10.95) say(`${named(e)} has a size of ${size.toFixed(1)} px`);
    const box = e.getBoundingClientRect();
    if (e.closest('svg') && (box.left < -0.5 || box.right > innerWidth + 0.5)) say(`${named(e)} is cut off by the window`);
    const card = e.closest('.waycard, .card, .fig, .setting, .panel, section');
    if (card && !e.closest('.scroll') && box.right > card.getBoundingClientRect().right + 1) say(`${named(e)} leaves its frame`);
    legible(e);
  }
  for (const svg of document.querySelectorAll('.plot, .axis, .way')) {
    const boxes = [...svg.querySelectorAll('text')].filter(shown).map((e) => [e, e.getBoundingClientRect()]);
    for (let i = 0; i < boxes.length; i++) {
      for (let k = i + 1; k < boxes.length; k++) {
        const [a, b] = [boxes[i][1], boxes[k][1]];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 0.5 && down > 3) say(`${named(boxes[i][0])} and ${named(boxes[k][0])} overlap`);
      }
    }
  }
  for (const cell of document.querySelectorAll('.forest td, .cpu td, .plain-table td, .glance td')) {
    if (shown(cell) && !cell.querySelector('svg') && cell.scrollWidth > cell.clientWidth + 1) say(`${named(cell)} does not fit its cell`);
  }
  // Names that stand in lines of their own below are not seen, which is no cut.
  for (const e of document.querySelectorAll('main *, .top *')) {
    const line = e.closest('.uses');
    if (getComputedStyle(e).textOverflow !== 'ellipsis' || !shown(e) || (line && e.offsetTop >= line.offsetTop + line.clientHeight)) continue;
    if (e.scrollWidth > e.clientWidth + 1) say(`${named(e)} is cut`);
  }

  // Contrast by WCAG 2: 4.5, or 3 for large text.
  function legible(e) {
    const ink = e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color;
    let ground = e;
    while (ground && /^rgba\(.*, 0\)$|transparent/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const on = ground ? getComputedStyle(ground).backgroundColor : getComputedStyle(document.body).backgroundColor;
    const light = (c) => {
      const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    if (!/^rgb/.test(ink) || !/^rgb/.test(on)) { say(`can't tell the contrast of ${ink} on ${on}`); return; }
    const [a, b] = [light(ink), light(on)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(getComputedStyle(e).fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(getComputedStyle(e).fontWeight, 10) >= 700);
    if (ratio < (large ? 3 : 4.5)) say(`${named(e)} has a contrast of ${ratio.toFixed(1)}: ${ink} on ${on}`);
  }
  return { wrong, count };
})()
