// What each network is of a request that the reader chooses: how long it takes, and how many calls across the network it makes one after
// the other. The arithmetic and the words are those of insight.Request and words.Request.
function request(chosen, apply) {
  const panel = document.getElementById('matters');
  if (!panel) return () => {};
  const times = [['100us', 1e5], ['200us', 2e5], ['500us', 5e5], ['1ms', 1e6], ['2ms', 2e6], ['5ms', 5e6], ['10ms', 1e7], ['20ms', 2e7], ['50ms', 5e7],
    ['100ms', 1e8], ['200ms', 2e8], ['500ms', 5e8], ['1s', 1e9], ['2s', 2e9], ['5s', 5e9], ['10s', 1e10]];
  const [took, calls] = [document.getElementById('took'), document.getElementById('calls')];
  const margin = Number(panel.dataset.margin);
  panel.querySelector('.sliders').hidden = false;

  const signed = (x, text) => `${x > 0 ? '+' : x < 0 ? '-' : ''}${text}`;
  const percent = (share) => `${100 * share < 0 ? '' : '+'}${(100 * share).toFixed(1)}`;

  // A time to three digits, as unit.Difference prints it.
  function difference(ns) {
    const size = Math.round(Math.abs(ns));
    if (size < 1e3) return signed(size && ns, `${size} ns`);
    for (const [scale, name] of [[1e3, 'µs'], [1e6, 'ms'], [1e9, 's']]) {
      let [decimals, v] = [2, size / scale];
      while (decimals > 0 && Math.round(v * 10 ** decimals) >= 1000) decimals--;
      v = Math.round(v * 10 ** decimals) / 10 ** decimals;
      if (v < 1000 || name === 's') return signed(ns, `${v.toFixed(decimals)} ${name}`);
    }
    return '';
  }

  function row(r, time, n) {
    const known = r.dataset.low !== '';
    const [added, low, high] = [r.dataset.each, r.dataset.low, r.dataset.high].map((each) => n * Number(each));
    const shares = [added / time, low / time, high / time];
    const yes = known && (shares[1] > margin || shares[2] < -margin);
    const no = known && shares[2] <= margin && shares[1] >= -margin;
    let [words, kind] = ["can't be told yet", 'unresolved'];
    if (no) [words, kind] = [`no: within ${Number((100 * margin).toPrecision(12))}%`, 'same'];
    else if (yes && shares[0] < 0) [words, kind] = ['yes, it saves', 'faster'];
    else if (yes) [words, kind] = ['yes', 'slower'];
    r.className = `v-${kind}`;
    r.cells[1].textContent = difference(added);
    r.cells[2].textContent = `${percent(shares[0])}%${known ? ` [${percent(shares[1])},\u00a0${percent(shares[2])}]` : ''}`;
    r.cells[3].firstChild.textContent = words;
  }

  took.addEventListener('input', () => { chosen.request = times[took.value][0]; apply(); });
  calls.addEventListener('input', () => { chosen.calls = calls.value; apply(); });

  return () => {
    if (!times.some(([name]) => name === chosen.request)) chosen.request = '2ms';
    if (!(Number(chosen.calls) >= 1 && Number(chosen.calls) <= 100)) chosen.calls = '8';
    const at = times.findIndex(([name]) => name === chosen.request);
    [took.value, calls.value] = [at, chosen.calls];
    const time = chosen.request.replace('us', 'µs');
    took.setAttribute('aria-valuetext', time);
    [took.nextElementSibling.textContent, calls.nextElementSibling.textContent] = [time, `${calls.value} ${calls.value === '1' ? 'call' : 'calls'}`];
    for (const e of panel.querySelectorAll('.said')) e.hidden = true;
    for (const r of panel.querySelectorAll('tbody tr')) row(r, times[at][1], Number(calls.value));
  };
}
