// Refreshes a page that says so with data-live, while it is visible and nobody
// uses one of its forms or selects a text in it. Without this script the page is
// the same, and still.
'use strict';
(() => {
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
        const answer = await fetch(location.href, { headers: { 'X-Live': '1' }, cache: 'no-store' });
        if (answer.status === 401 || answer.status === 403) return location.reload();
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const next = page.querySelector('main');
        if (answer.ok && next && !inUse()) {
          const said = document.getElementById('said');
          const live = next.dataset.live;
          main.replaceChildren(...(said ? [said] : []), ...document.adoptNode(next).childNodes);
          const footer = page.querySelector('footer p');
          if (footer) document.querySelector('footer p').replaceWith(document.adoptNode(footer));
          main.classList.remove('stale');
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
