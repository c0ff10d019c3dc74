// What a page does with scripts. Without them it is whole: this keeps it up to date and adds keys.
'use strict';

const root = document.documentElement, main = document.getElementById('main'), said = document.getElementById('said');

// Ages count on by themselves: what the server sends has times alone.
function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60);
  if (s < 60) return s + 's';
  if (m < 10 && s % 60) return m + 'm' + (s % 60) + 's';
  if (m < 60) return m + 'm';
  if (h < 24 && m % 60) return h + 'h' + (m % 60) + 'm';
  if (h < 48) return h + 'h';
  return Math.floor(h / 24) + 'd';
}

function age(within) {
  const now = Date.now();
  for (const t of within.querySelectorAll('time[data-age]')) {
    const text = span(now - Date.parse(t.dateTime));
    if (t.textContent !== text) t.textContent = text;
  }
}

// parse makes elements of the server's HTML, which its templates have escaped.
function parse(html) {
  const t = document.createElement('template');
  t.innerHTML = html;
  age(t.content);
  return t.content;
}

// replace puts new elements where an old one was, or into it, and gives the focus back.
function replace(old, html, inside) {
  const active = document.activeElement, held = old.contains(active) && active !== old ? active : null;
  const key = held && (held.id ? '#' + CSS.escape(held.id) : held.tagName === 'A' ? 'a[href="' + CSS.escape(held.getAttribute('href')) + '"]' : null);
  const fresh = parse(html);
  if (inside) old.replaceChildren(fresh); else old.replaceWith(fresh);
  if (key) main.querySelector(key)?.focus({preventScroll: true});
}

function apply(u) {
  for (const c of u.changes || []) {
    const old = document.getElementById(c.id);
    if (!old) { location.reload(); return; }
    replace(old, c.html, c.id === 'main');
  }
  const top = document.getElementById('truth');
  if (top) replace(top, u.top);
  main.dataset.have = u.have;
  root.dataset.revision = u.revision;
  root.classList.toggle('stale', u.stale);
  if (u.said && said.textContent !== u.said) said.textContent = u.said;
  heard = Date.now();
  if (u.changes?.length) document.dispatchEvent(new Event('changed'));
}

// Live updates: one stream for each tab that is seen. A browser opens six connections to a server at most, so
// the sixth tab and further ones ask every few seconds instead, and so does one that gets no stream.
const quiet = 12000, again = 5000;
let stream = null, unlock = null, timer = 0, heard = Date.now();

const address = more => main.dataset.live + '&have=' + encodeURIComponent(main.dataset.have) + more;

async function seat() {
  if (!navigator.locks) return true;
  for (let n = 0; n < 5; n++) {
    const got = await new Promise(answer => {
      navigator.locks.request('leasehold-live-' + n, {ifAvailable: true}, lock => {
        if (!lock) { answer(false); return; }
        return new Promise(done => { unlock = done; answer(true); });
      }).catch(() => answer(true));
    });
    if (got) return true;
  }
  return false;
}

function close() {
  clearTimeout(timer);
  stream?.close();
  unlock?.();
  stream = unlock = null;
}

async function open() {
  close();
  if (document.hidden || !main.dataset.live) return;
  if (!await seat()) { poll(); return; }
  stream = new EventSource(address(''));
  for (const name of ['snapshot', 'delta', 'heartbeat']) stream.addEventListener(name, e => { apply(JSON.parse(e.data)); watch(); });
  stream.onerror = () => { close(); poll(); };
  watch();
}

// A stream that says nothing is broken, whatever the network says.
function watch() {
  clearTimeout(timer);
  timer = setTimeout(() => { close(); poll(); }, quiet);
}

async function poll() {
  try {
    const answer = await fetch(address('&once'), {signal: AbortSignal.timeout(again)});
    if (answer.ok) apply(await answer.json());
  } catch { // it is shown as old
    if (Date.now() - heard > quiet && await elsewhere()) return;
  }
  timer = setTimeout(open, again + 1000 * Math.random());
}

// elsewhere goes to another replica that is ready: the URL says what is shown, so it is the same there.
async function elsewhere() {
  for (const other of (main.dataset.others || '').split(' ').filter(Boolean)) {
    try {
      const answer = await fetch(other + '/readyz', {credentials: 'omit', signal: AbortSignal.timeout(again)});
      if (answer.ok) { location.replace(other + location.pathname + location.search + location.hash); return true; }
    } catch { /* it is gone too, or does not know us */ }
  }
  return false;
}

function clock() {
  if (document.hidden) return;
  age(document);
  const silence = Date.now() - heard;
  if (silence > quiet) {
    root.classList.add('stale');
    const fresh = document.getElementById('freshness');
    if (fresh) fresh.textContent = 'cut off: this was so ' + span(silence) + ' ago';
  }
}

setInterval(clock, 1000);
document.addEventListener('visibilitychange', open);
addEventListener('pagehide', close);
addEventListener('pageshow', e => { if (e.persisted) open(); });
open();

// The grid has one tab stop; arrows move within it.
const keysOff = () => localStorage.getItem('keys') === 'off';

function cells() { return [...main.querySelectorAll('.cells a')]; }

function rove(to) {
  for (const a of main.querySelectorAll('.cells a[tabindex="0"]')) a.tabIndex = -1;
  if (to) to.tabIndex = 0;
}

function settle() {
  const all = cells();
  for (const a of all) if (a !== document.activeElement) a.tabIndex = -1;
  rove(all.includes(document.activeElement) ? document.activeElement : all[0]);
}

document.addEventListener('changed', settle);
settle();

function point(a) {
  const p = document.getElementById('pointed');
  if (p && a) p.textContent = a.getAttribute('aria-label');
}

main.addEventListener('pointerover', e => point(e.target.closest('.cells a')));
main.addEventListener('focusin', e => { const a = e.target.closest('.cells a'); if (a) { rove(a); point(a); } });

function move(from, key) {
  const all = cells(), at = all.indexOf(from), box = from.getBoundingClientRect();
  const row = d => all.filter(a => { const b = a.getBoundingClientRect(); return d < 0 ? b.top < box.top - 2 : b.top > box.top + 2; })
    .sort((a, b) => { const x = a.getBoundingClientRect(), y = b.getBoundingClientRect();
      return d * (x.top - y.top) || Math.abs(x.left - box.left) - Math.abs(y.left - box.left); })[0];
  return {ArrowRight: all[at + 1], ArrowLeft: all[at - 1], ArrowDown: row(1), ArrowUp: row(-1), Home: all[0], End: all.at(-1)}[key];
}

document.addEventListener('keydown', e => {
  const cell = e.target.closest?.('.cells a');
  if (cell && !e.ctrlKey && !e.metaKey && !e.altKey) {
    const to = move(cell, e.key);
    if (to) { to.focus(); e.preventDefault(); return; }
  }
  if (keysOff() || e.ctrlKey || e.metaKey || e.altKey || e.target.matches?.('input, button, select')) return;
  const first = what => main.querySelector(what);
  const to = {
    '/': () => first('input[name=text]') || first('#chips a') || first('th a'),
    n: () => {
      const sick = [...main.querySelectorAll('.problems a, .cells a:is(.lost, .dead, .unhealthy, .suspect)')];
      return sick[(sick.indexOf(document.activeElement) + 1) % sick.length];
    },
    e: () => { const a = document.activeElement?.closest?.('a'); if (a) a.click(); },
    g: () => first('.cells a'),
  }[e.key];
  if (!to) return;
  e.preventDefault();
  to()?.focus();
});
