// Keeps the bar of health, the title and the icon fresh, also in a hidden tab, and the page while
// it is visible. Without this script the page is the same, and still.
'use strict';
(() => {
  const get = (address, patience) =>
    fetch(address, { headers: { 'X-Live': '1' }, cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout(patience) });
  const parse = text => new DOMParser().parseFromString(text, 'text/html');
  // An identity proxy may also lead to its sign-in. Its host answers no script.
  const signedOut = answer => answer.status === 401 || answer.status === 403 || answer.type === 'opaqueredirect';
  // What a form was answered, as new keys, is not shown again: a person takes leave of it.
  const isAnswer = 'sent' in document.body.dataset;

  // The bar. It changes only when its text changes, so that each trouble is announced
  // once. An answer that is not 2xx, and no answer, are troubles too. Their time is that of the
  // service, from which the clock of the browser differs by skew.
  const bar = document.getElementById('health');
  let shown = bar ? bar.innerHTML.trim() : '', silentSince, skew = 0;
  const show = (html, lines) => {
    if (html === shown) return;
    shown = html;
    bar.replaceChildren(...lines);
    alarm();
  };
  // The title and the icon of the tab say how many lines are red.
  const icon = document.querySelector('link[rel=icon]');
  const alarm = () => {
    const bad = bar.querySelectorAll('.bad').length;
    document.title = (bad ? `(${bad}) ` : '') + document.title.replace(/^\(\d+\) /, '');
    icon.href = bad ? icon.dataset.bad : icon.dataset.good;
  };
  const say = text => {
    const line = document.createElement('p');
    line.className = 'notice bad';
    line.textContent = text;
    show(text, [line]);
  };
  const silent = what => {
    silentSince ??= new Date(Date.now() + skew);
    say(`${what} since ${silentSince.toLocaleTimeString('en-GB', { timeZone: document.body.dataset.zone })}. This page is old. Callers of this replica may get no answer either.`);
  };
  const watch = async () => {
    try {
      const answer = await get('/console/health', 1400);
      if (signedOut(answer)) return isAnswer ? say('You are signed out. Copy what you need of this page before you leave it.') : location.reload();
      if (answer.ok) {
        skew = Date.parse(answer.headers.get('Date')) - Date.now();
        const next = parse(await answer.text()).getElementById('health');
        silentSince = undefined;
        show(next.innerHTML.trim(), [...document.adoptNode(next).childNodes]);
      } else {
        silent(`The console has answered ${answer.status}`);
      }
    } catch {
      silent('The service has not answered');
    }
    setTimeout(watch, 500);
  };
  if (bar) setTimeout(watch, 500);

  // Keys, and rows of lists that open what they lead to. A selected text is not a click.
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === '/') document.querySelector('.search input[type=search]').focus();
    else if (event.key === '?') document.getElementById('keys').showModal();
    else return;
    event.preventDefault();
  });
  document.addEventListener('click', event => {
    const row = event.target.closest('table.wide tbody tr');
    const link = row?.querySelector('a[href^="/console/sale/"]') ?? row?.querySelector('a[href^="/console/"]');
    if (link && getSelection().isCollapsed && !event.target.closest('a, button, details, input, label')) link.click();
  });

  // A page that says so with data-live is loaded again, unless somebody uses one of its
  // forms or selects a text in it.
  const main = document.querySelector('main[data-live]');
  if (!main) return;
  const inUse = () => {
    const selection = getSelection();
    return document.hidden || (main.contains(document.activeElement) && document.activeElement !== main) ||
      (!selection.isCollapsed && selection.containsNode(main, true));
  };
  const refresh = async () => {
    if (!inUse()) {
      try {
        const answer = await get(location.href, 5000);
        if (signedOut(answer)) return location.reload();
        const page = parse(await answer.text());
        const next = page.querySelector('main');
        main.classList.toggle('stale', !answer.ok);
        if (answer.ok && next && !inUse()) {
          const said = document.getElementById('said');
          const live = next.dataset.live;
          main.replaceChildren(...(said ? [said] : []), ...document.adoptNode(next).childNodes);
          const footer = page.querySelector('footer p');
          if (footer) document.querySelector('footer p').replaceWith(document.adoptNode(footer));
          if (!live) return;
        }
      } catch {
        main.classList.add('stale');
      }
    }
    setTimeout(refresh, Number(main.dataset.live) * 1000);
  };
  setTimeout(refresh, Number(main.dataset.live) * 1000);
})();
