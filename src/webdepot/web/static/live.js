// Refreshes the live part of a page every two seconds; without it the page still works by reload.
(() => {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  const refresh = async () => {
    try {
      const answer = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      part.innerHTML = await answer.text();
      if (answer.headers.get("X-Ended")) { location.reload(); return; }
    } catch { /* the server is away for a moment: try again */ }
    setTimeout(refresh, document.hidden ? 10000 : 2000);
  };
  setTimeout(refresh, 2000);
})();
