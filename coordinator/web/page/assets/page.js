// What the page does with scripts. Without them it is whole.
'use strict';

// Ages count on by themselves.
function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60);
  if (s < 60) return s + 's';
  if (m < 10 && s % 60) return m + 'm' + (s % 60) + 's';
  if (m < 60) return m + 'm';
  if (h < 24 && m % 60) return h + 'h' + (m % 60) + 'm';
  if (h < 48) return h + 'h';
  return Math.floor(h / 24) + 'd';
}

function age(root) {
  const now = Date.now();
  for (const t of root.querySelectorAll('time[data-age]')) {
    const text = span(now - Date.parse(t.dateTime));
    if (t.textContent !== text) t.textContent = text;
  }
}

setInterval(() => { if (!document.hidden) age(document); }, 1000);
