// Refreshes a page that says so with data-live, while it is visible and nobody
// uses one of its forms. Without this script the page is the same, and still.
'use strict';
(() => {
  const main = document.querySelector('main[data-live]');
  if (!main) return;
  const every = Number(main.dataset.live) * 1000;
  const refresh = async () => {
    const busy = main.contains(document.activeElement) && document.activeElement !== main;
    if (!document.hidden && !busy) {
      try {
        const answer = await fetch(location.href, { headers: { 'X-Live': '1' }, cache: 'no-store' });
        if (answer.status === 401 || answer.status === 403) return location.reload();
        if (answer.ok) {
          const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
          const next = page.querySelector('main');
          if (next) main.replaceChildren(...document.adoptNode(next).childNodes);
          const footer = page.querySelector('footer p');
          if (footer) document.querySelector('footer p').replaceWith(document.adoptNode(footer));
          main.classList.remove('stale');
        }
      } catch {
        main.classList.add('stale');
      }
    }
    setTimeout(refresh, every);
  };
  setTimeout(refresh, every);
})();
