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

// parse makes elements of the server's HTML, which its templates have escaped. What is part of a picture is parsed as such.
function parse(html, place) {
  const t = document.createElement('template'), drawn = place.ownerSVGElement;
  t.innerHTML = drawn ? '<svg>' + html + '</svg>' : html;
  age(t.content);
  if (!drawn) return t.content;
  const all = document.createDocumentFragment();
  all.append(...t.content.firstChild.childNodes);
  return all;
}

// change makes one change of an update; false: the page is not what the server takes it for.
function change(c) {
  const old = document.getElementById(c.id);
  if (c.gone) { old?.remove(); return true; }
  const place = c.in ? document.getElementById(c.in) : old;
  if (!place || !(c.html || old)) return false;
  if (!c.in) {
    if (c.id === 'main') old.replaceChildren(parse(c.html, old)); else old.replaceWith(parse(c.html, old));
    return true;
  }
  const fresh = c.html ? parse(c.html, place) : old;
  if (c.html) old?.remove();
  if (!c.after) { place.prepend(fresh); return true; }
  const before = document.getElementById(c.after);
  before?.after(fresh);
  return !!before;
}

// held finds what has the focus again when its element was replaced or moved.
function held() {
  const active = document.activeElement, around = active?.closest('#main [id]');
  if (!around) return () => {};
  const link = active.getAttribute('href'), id = around.id;
  return () => {
    if (document.activeElement === active) return;
    const now = document.getElementById(id);
    (around === active || !link ? now : now?.querySelector('a[href="' + CSS.escape(link) + '"]'))?.focus({preventScroll: true});
  };
}

function apply(u) {
  const focus = held();
  for (const c of u.changes || []) if (!change(c)) { location.reload(); return; }
  focus();
  const top = document.getElementById('truth');
  if (top) top.replaceWith(parse(u.top, top));
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

const keysBox = document.getElementById('keys-off');
keysBox.checked = keysOff();
keysBox.parentElement.hidden = false;
keysBox.addEventListener('change', () => localStorage.setItem('keys', keysBox.checked ? 'off' : 'on'));

// The slider of a page of the past: it says its moment, and goes there when it is let go.
const moment = main.querySelector('input[type=range]');
if (moment) {
  const tell = () => { moment.form.querySelector('output').textContent = new Date(moment.value * 1000).toISOString().slice(5, 19).replace('T', ' ') + ' UTC'; };
  moment.addEventListener('input', tell);
  moment.addEventListener('pointerup', () => moment.form.requestSubmit());
  tell();
}

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
      const sick = [...main.querySelectorAll('.problems a:not(.rule), .cells a:is(.lost, .dead, .unhealthy, .suspect)')];
      return sick[(sick.indexOf(document.activeElement) + 1) % sick.length];
    },
    e: () => { const a = document.activeElement?.closest?.('a'); if (a) a.click(); },
    g: () => first('.cells a'),
    '?': () => { const help = document.getElementById('help'); help.open = true; return help.firstElementChild; },
  }[e.key];
  if (!to) return;
  e.preventDefault();
  to()?.focus();
});
