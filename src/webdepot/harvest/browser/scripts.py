"""What is run in a page: to make it ask for more, and to read what it has become.

All of it runs in a world of its own (`Page.createIsolatedWorld`): it sees the page's nodes, but not what the
page has made of `fetch`, `Element.prototype` or `window.scrollBy`. Each is short and answers at once; waiting
is done on our side of the wire.
"""

MOST_HTML_LETTERS = 16 << 20
MOST_TEXT_LETTERS = 1 << 20

WAKE_LAZY = """(() => {
  for (const part of document.querySelectorAll('img[loading=lazy], iframe[loading=lazy]')) part.loading = 'eager';
})()"""

SCROLL = """(() => {
  const root = document.scrollingElement || document.documentElement;
  const before = root.scrollTop;
  window.scrollTo(0, before + Math.max(200, innerHeight * 0.9));
  if (root.scrollTop === before) { window.dispatchEvent(new Event('scroll')); document.dispatchEvent(new Event('scroll')); }
  return root.scrollTop > before;
})()"""
"""Whether there was something left to scroll. A page that fits its window hears of it all the same."""

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
  return [document.URL, shown.slice(0, most) + roots.join('\\n').slice(0, most)];
})()""".replace("LETTERS", str(MOST_HTML_LETTERS))
"""Address and HTML of a frame as it is now, with what stands in open shadow roots."""

TEXT = f"((document.body && document.body.innerText) || '').slice(0, {MOST_TEXT_LETTERS})"
CLICK = "function() { if (this.click) this.click(); else this.dispatchEvent(new MouseEvent('click', {bubbles: true})); }"
