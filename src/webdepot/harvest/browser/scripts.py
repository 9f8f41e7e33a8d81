"""Scripts that are run in a page: to make it load more, and to read its content.

They run in an isolated world (`Page.createIsolatedWorld`): they see the page's nodes, but not the page's
changes to `fetch`, `Element.prototype` or `window.scrollBy`. Each but `IDLE` returns at once; waiting is done
on our side.
"""

MOST_HTML_LETTERS = 16 << 20
MOST_TEXT_LETTERS = 1 << 20

WAKE_LAZY = """(() => {
  const lazy = document.querySelectorAll('img[loading=lazy], iframe[loading=lazy]');
  for (const part of lazy) part.loading = 'eager';
})()"""

SCROLL = """(() => {
  const root = document.scrollingElement || document.documentElement;
  const before = root.scrollTop;
  window.scrollTo(0, before + Math.max(200, innerHeight * 0.9));
  if (root.scrollTop !== before) return root.scrollTop > before;
  for (const target of [window, document]) target.dispatchEvent(new Event('scroll'));
  // The content of many apps is in a box that scrolls in a page that does not.
  for (const box of [...document.querySelectorAll('main, div, section, article, ul')].slice(0, 2000)) {
    if (box.clientHeight < innerHeight / 2 || box.scrollHeight <= box.clientHeight + 50) continue;
    const top = box.scrollTop;
    if (!/auto|scroll/.test(getComputedStyle(box).overflowY)) continue;
    box.scrollTop += Math.max(200, box.clientHeight * 0.9);
    if (box.scrollTop > top) return true;
  }
  return false;
})()"""
"""Scrolls the page, or a large box in it; returns whether it could scroll further. A page that fits its
window gets the scroll event, too.
"""

IDLE = "new Promise(done => requestIdleCallback(done, {timeout: 1000}))"
"""Resolved when the page has nothing to do: what has arrived was given to its scripts."""

TO_TOP = "window.scrollTo(0, 0)"

PLAY = """(() => {
  const media = [...document.querySelectorAll('video, audio')].slice(0, 20);
  for (const one of media) { one.muted = true; one.preload = 'auto'; one.play().catch(() => {}); }
  return media.length;
})()"""
PAUSE = "document.querySelectorAll('video, audio').forEach(one => one.pause())"

COLLECT = """(() => {
  const most = LETTERS, roots = [];
  let room = most;
  const walk = (tree) => {
    for (const node of tree.querySelectorAll('*')) {
      if (!node.shadowRoot || room <= 0) continue;
      const inner = node.shadowRoot.innerHTML;
      room -= inner.length;
      roots.push(inner);
      walk(node.shadowRoot);
    }
  };
  walk(document);
  const shown = document.documentElement ? document.documentElement.outerHTML : '';
  return [document.URL, shown.slice(0, most) + roots.join('\\n').slice(0, most), document.characterSet];
})()""".replace("LETTERS", str(MOST_HTML_LETTERS))
"""Address and current HTML of a frame, with the content of open shadow roots, and its encoding."""

TEXT = """(() => {
  const most = LETTERS, unseen = new Set(['STYLE', 'SCRIPT', 'TEMPLATE', 'NOSCRIPT']);
  const texts = [(document.body && document.body.innerText) || ''];
  let room = most - texts[0].length;
  const walk = (tree) => {
    for (const node of tree.querySelectorAll('*')) {
      if (!node.shadowRoot || room <= 0) continue;
      for (const part of node.shadowRoot.childNodes) {
        // Outside what is shown, innerText would also give the hidden text.
        const isSeen = part instanceof Element
          ? !unseen.has(part.tagName) && getComputedStyle(part).display !== 'none' : part instanceof Text;
        const text = isSeen ? (part.innerText || (part instanceof Text && part.data.trim()) || '') : '';
        room -= text.length;
        if (text) texts.push(text);
      }
      walk(node.shadowRoot);
    }
  };
  walk(document);
  return [texts.join('\\n').slice(0, most), String(document.title).slice(0, 10000)];
})()""".replace("LETTERS", str(MOST_TEXT_LETTERS))
"""The text that is shown, also in open shadow roots, and the title."""
