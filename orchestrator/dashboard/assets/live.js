// Replaces what changed in #live once a second. Without this script the page is
// complete, only not live.
'use strict';
const every = 1000;
const stale = document.getElementById('stale');
const search = document.getElementById('search');
let busy = false, again = false, lastGood = Date.now();

// morph makes the element a look like b, keeping the nodes, and so focus, selection and
// scroll positions; what has data-keep is left alone. Children with data-key are matched by it, others by place.
function morph(a, b) {
  if (a.dataset.keep || a.isEqualNode(b)) return;
  for (const { name } of [...a.attributes]) if (!b.hasAttribute(name)) a.removeAttribute(name);
  for (const { name, value } of b.attributes) if (a.getAttribute(name) !== value) a.setAttribute(name, value);
  const keyed = new Map();
  for (const c of a.children) if (c.dataset.key) keyed.set(c.dataset.key, c);
  let at = a.firstChild;
  for (const want of [...b.childNodes]) {
    const key = want.dataset && want.dataset.key;
    const have = key ? keyed.get(key) : at;
    if (!have || have.nodeName !== want.nodeName || (!key && have.dataset && have.dataset.key)) { a.insertBefore(want, at); continue; }
    if (have === at) at = at.nextSibling; else a.insertBefore(have, at);
    if (want.nodeType === Node.ELEMENT_NODE) morph(have, want); else if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  const live = document.getElementById('live');
  try {
    const response = await fetch(live.dataset.src, { signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
    const next = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('live');
    const focused = document.activeElement;
    if (!again) morph(live, next);
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    document.getElementById('clock').textContent = live.dataset.clock;
    lastGood = Date.now();
    show('');
  } catch (e) {
    const seconds = Math.round((Date.now() - lastGood) / 1000);
    show('Not live: what you see is ' + seconds + ' s old. ' + (e.name === 'TypeError' ? 'Lakeweir does not answer.' : e.message));
  }
  busy = false;
  if (again) { again = false; refresh(); }
}

function show(text) {
  if (stale.textContent !== text) stale.textContent = text;
  stale.hidden = !text;
  document.body.classList.toggle('is-stale', !!text);
}

if (search) {
  search.form.addEventListener('submit', (e) => e.preventDefault());
  search.addEventListener('input', () => {
    const page = new URL(location), q = search.value.trim();
    if (q) page.searchParams.set('q', q); else page.searchParams.delete('q');
    history.replaceState(null, '', page);
    document.getElementById('live').dataset.src = '/fragments/fleet' + page.search;
    refresh();
  });
  document.addEventListener('keydown', (e) => {
    if (e.key === '/' && document.activeElement !== search && !e.ctrlKey && !e.metaKey) { e.preventDefault(); search.select(); }
  });
}
if (document.getElementById('live')) {
  setInterval(() => { if (!document.hidden && !busy) refresh(); }, every);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
}
