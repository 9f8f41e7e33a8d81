// Keeps the live part of a page up to date: by server-sent events, or where these fail by asking every few seconds. Parts with
// data-refresh come out of the page itself, so that forms beside them keep what was typed. Without scripts the page works by reload.
(() => {
  const again = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-refresh]")) {
          const next = page.getElementById(part.id);
          if (next && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(next));
        }
      }
    } catch { /* the server is away for a moment: try again */ }
    if (document.querySelector("[data-refresh]")) setTimeout(again, document.hidden ? 15000 : 4000);
  };
  if (document.querySelector("[data-refresh]")) setTimeout(again, 4000);
})();

(() => {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  const show = (html) => { part.innerHTML = html; };
  const ask = async () => {
    try {
      const answer = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      show(await answer.text());
      if (answer.headers.get("X-Ended")) { location.reload(); return; }
    } catch { /* the server is away for a moment: try again */ }
    setTimeout(ask, document.hidden ? 10000 : 2000);
  };
  if (!window.EventSource || !part.dataset.events) { setTimeout(ask, 2000); return; }
  let line = null;
  let fails = 0;
  const listen = () => {
    line = new EventSource(part.dataset.events);
    line.addEventListener("live", (event) => { fails = 0; show(event.data); });
    line.addEventListener("ended", () => { line.close(); location.reload(); });
    line.onerror = () => {
      fails += 1;
      if (line.readyState === EventSource.CLOSED || fails > 5) { line.close(); ask(); }
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) line.close();
    else if (line.readyState === EventSource.CLOSED) listen();
  });
  listen();
})();
