'use strict';
// Search, and the two runs that are compared: the older of them is the old one.
(() => {
  const rows = [...document.querySelectorAll('tbody tr')];
  const [find, compare, hint] = ['find', 'compare', 'hint'].map((id) => document.getElementById(id));
  if (!find) return;
  find.hidden = hint.hidden = false;
  find.addEventListener('input', () => {
    const asked = find.value.trim().toLowerCase().split(/\s+/);
    for (const r of rows) r.hidden = !asked.every((w) => r.textContent.toLowerCase().includes(w));
  });
  document.querySelector('tbody').addEventListener('change', () => {
    const marked = rows.map((r) => r.querySelector('input')).filter((i) => i.checked).map((i) => i.value);
    compare.hidden = marked.length !== 2;
    hint.hidden = marked.length === 2;
    const [newer, older] = marked;
    compare.href = `/compare?${new URLSearchParams({ old: older, new: newer })}`;
    compare.textContent = `Compare ${older} with ${newer}`;
  });
  document.documentElement.dataset.ready = 'true';
})();
