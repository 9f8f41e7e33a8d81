// Runs in an isolated world of a page (see exploration.py): finds what a reader would click, clicks it, and
// says what became visible. Nothing is submitted, and no click leaves the page.
(() => {
  if (globalThis.webdepot) return;
  const MOST_LISTED = 200, MOST_SCANNED = 3000, MOST_SELECTS = 5, MOST_OPTIONS = 10;
  const MOST_LINKS = 2000, MOST_TEXT = 200000, LONGEST_LABEL = 60, LONGEST_KEY = 200;
  const BUTTONS = `button, summary, input[type=button], [onclick], [role=button], [role=link], [role=tab],
    [role=menuitem], [role=menuitemradio], [role=treeitem], [aria-expanded], [aria-controls], [data-toggle],
    [data-bs-toggle], a:not([href])`;
  const MORE = new RegExp('^(load|show|view|see|read) (more|all|older)|^more( results| posts| items|$)|^older'
    + '|mehr (laden|anzeigen|zeigen)|^mehr$|^weitere |^alle anzeigen|meer (laden|tonen|weergeven)|^meer$'
    + '|^(toon|laad|bekijk) (meer|alle)|(voir|afficher|charger) (plus|tout|la suite)|^plus d', 'i');
  // Not ">>>", as in copied sessions of an interpreter.
  const NEXT = /^(next|weiter|nächste|volgende|suivant|[›»→❯]|>>?(?!>))/i;
  const NEXT_CLASS = /(^|[-_ ])next($|[-_ ])/i;
  const DENIED = new RegExp('log ?(out|off)|sign ?(out|in|up)|log ?in|regist|abmeld|anmeld|uitlog|inlog'
    + '|connexion|inscri|delete|remove|lösch|entfern|verwijder|supprim|add to|buy|order|checkout|cart|kauf'
    + '|bestel|warenkorb|winkel|panier|achet|command|subscri|abonn|print|druck|imprim|download|upload|vote'
    + '|report|flag|share|teilen|delen|partag|send|senden|verzend|envoy|^(post|save|submit)$'
    + '|^(edit|bearbeiten|bewerk|modifier|éditer|reply|antwort|beantwoord|répondre)', 'i');
  const ABOUT_CONSENT = new RegExp('cookie|consent|gdpr|dsgvo|rgpd|privacy|datenschutz|einwillig|tracking'
    + '|toestemming|confidentialit|traceur|vie privée', 'i');
  const REJECT = new RegExp('reject|decline|refuse|deny|disagree|(only|just) (the )?(strictly )?(necessary|essential|required)'
    + '|(necessary|essential|required) (cookies )?only|without (accepting|consent)|no,? thank|ablehn|verweiger'
    + '|nur (technisch )?(notwendig|essen[tz]iell|erforderlich)|ohne (einwilligung|zustimmung)|weiger|afwijz'
    + '|alleen (strikt )?(noodzakelijk|functione)|niet akkoord|refus|sans (accepter|consent)'
    + '|(uniquement|seulement) .*(nécessaires|essentiel)', 'i');
  const ACCEPT = new RegExp('^(ok(ay)?|yes|close|got it|continue|dismiss|hide|schließen|sluiten|fermer|×|✕)\\b'
    + '|accept|agree|allow|understand|akzeptier|zustimm|einverstanden|verstanden|erlauben|akkoord|toestaan'
    + '|begrepen|autoris|d.accord|compris', 'i');

  // Where clicks would have led -> rel of the link.
  const left = new Map();
  // Key -> what to click. Rebuilt by every look, because scripts replace nodes.
  let targets = new Map(), baseline = null, isStopped = false;
  const listening = new Set(), listed = new Set();

  const label = (node) => (node.getAttribute('aria-label') || node.textContent || node.value || node.title || '')
    .trim().slice(0, 300).replace(/\s+/g, ' ').slice(0, LONGEST_LABEL);
  const isShown = (node) => node.checkVisibility({visibilityProperty: true});
  const withoutHash = (address) => address.split('#', 1)[0];
  const isScript = (link) => link.protocol === 'javascript:';
  const trees = () => {
    const found = [document];
    for (let at = 0; at < found.length && at < 50; at++) {
      const walker = document.createTreeWalker(found[at], NodeFilter.SHOW_ELEMENT);
      for (let node = walker.nextNode(), room = 20000; node && room; node = walker.nextNode(), room--)
        if (node.shadowRoot) found.push(node.shadowRoot);
    }
    return found;
  };
  const submits = (node) => node.form && node.form.method !== 'dialog' && /^(submit|image|reset)$/.test(node.type);
  const mayClick = (node) => !node.disabled && node.getAttribute('aria-disabled') !== 'true' && !submits(node)
    && !node.isContentEditable && !node.closest('[inert]');

  // --- no click leaves the page or submits anything ---

  addEventListener('submit', (event) => {
    if (event.target.method === 'dialog') return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  addEventListener('click', (event) => {
    // The last of all listeners: what the page itself has handled is left alone.
    const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement && node.href
      || node instanceof HTMLAreaElement && node.href);
    if (!link || event.defaultPrevented || isScript(link)) return;
    if (withoutHash(link.href) === withoutHash(location.href)) return;
    event.preventDefault();
    isStopped = true;
    if (/^https?:/.test(link.protocol)) left.set(link.href, link.rel);
  });

  const press = (node) => {
    isStopped = false;
    const mouse = {bubbles: true, cancelable: true, composed: true, button: 0, detail: 1};
    for (const name of ['pointerover', 'mouseover', 'pointerdown', 'mousedown', 'pointerup', 'mouseup'])
      node.dispatchEvent(new (name.startsWith('p') ? PointerEvent : MouseEvent)(name, mouse));
    const isLeft = node.dispatchEvent(new MouseEvent('click', mouse));
    return !isLeft && !isStopped;
  };

  // --- what there is to click ---

  const kindOfLink = (link) => {
    const raw = link.getAttribute('href');
    if (link.hasAttribute('download') || (link.target && link.target !== '_self')) return '';
    if (raw === '' || raw === '#' || isScript(link) || link.matches('[role], [aria-controls], [data-toggle], [data-bs-toggle]'))
      return link.origin === location.origin || isScript(link) ? 'button' : '';
    if (withoutHash(link.href) === withoutHash(location.href)) return /^#[!/]/.test(link.hash) ? 'route' : '';
    return link.origin === location.origin ? 'link' : '';
  };
  // The arrow of a carousel often has no text.
  const isNext = (node, text) => NEXT.test(text) || (node.dataset.bsSlide || node.dataset.slide) === 'next'
    || !text && NEXT_CLASS.test(`${node.className} ${node.id}`);
  const kindOf = (node) => {
    const text = label(node);
    if (DENIED.test(text) || !mayClick(node)) return '';
    if (node instanceof HTMLAnchorElement && node.hasAttribute('href')) {
      const kind = kindOfLink(node);
      return kind !== 'button' ? kind : MORE.test(text) ? 'more' : isNext(node, text) ? 'next' : kind;
    }
    if (node.closest('a[href]')) return '';
    if (MORE.test(text)) return 'more';
    if (isNext(node, text)) return 'next';
    if (node.getAttribute('role') === 'tab') return node.getAttribute('aria-selected') === 'true' ? '' : 'tab';
    if (node.getAttribute('aria-expanded') === 'true') return '';
    return node.hasAttribute('aria-expanded') || node.hasAttribute('aria-controls') ? 'tab' : 'button';
  };
  const pointed = (tree) => {
    // Frameworks listen at the root; what they make clickable mostly has this cursor.
    const found = [], isPointed = (node) => node && getComputedStyle(node).cursor === 'pointer';
    const nodes = tree.querySelectorAll('div, li, span, td, th, tr, img, p, h1, h2, h3, h4, section, article');
    for (const node of [...nodes].slice(0, MOST_SCANNED))
      if (isPointed(node) && !isPointed(node.parentElement) && !node.closest('a, button, label, select, summary')
        && !node.querySelector('a[href], button, input, select, textarea')) found.push(node);
    return found;
  };
  const options = (tree) => [...tree.querySelectorAll('select:not([multiple], [disabled])')].slice(0, MOST_SELECTS)
    .flatMap((menu) => [...menu.options].filter((one) => !one.selected && !one.disabled).slice(0, MOST_OPTIONS));

  const ORDER = ['more', 'tab', 'option', 'next', 'button', 'route', 'link'];
  const find = () => {
    const items = ORDER.map(() => []), counts = new Map();
    targets = new Map();
    const add = (node, kind) => {
      if (!kind || !isShown(kind === 'option' ? node.parentElement : node)) return;
      const owner = kind === 'option' ? `${node.closest('select').name}=${node.value}` : '';
      const href = kind === 'link' || kind === 'route' ? node.href : '';
      const name = [kind, node.tagName, node.id, owner, href, label(node)].join('|').slice(0, LONGEST_KEY);
      const count = (counts.get(name) || 0) + 1;
      counts.set(name, count);
      const key = count > 1 ? `${name}|${count}` : name;
      targets.set(key, node);
      items[ORDER.indexOf(kind)].push([key, kind, href]);
    };
    const hasScripts = document.scripts.length > 0;
    for (const tree of trees()) {
      for (const details of tree.querySelectorAll('details:not([open])')) details.open = true;
      if (!hasScripts) continue;
      const nodes = new Set([...tree.querySelectorAll(BUTTONS), ...tree.querySelectorAll('a[href]')]);
      for (const node of pointed(tree)) nodes.add(node);
      for (const node of listening) if (node.isConnected && node.getRootNode() === tree) nodes.add(node);
      for (const node of nodes) if (node.tagName !== 'SUMMARY' && node instanceof HTMLElement) add(node, kindOf(node));
      for (const option of options(tree)) add(option, 'option');
    }
    return items.flat();
  };
  const look = () => {
    // Without those that were listed before. A button of the same name on another route after '#' is another one.
    const place = /^#[!/]/.test(location.hash) ? location.hash : '';
    const name = ([key, kind]) => kind === 'route' || kind === 'link' ? key : place + key;
    const fresh = find().filter((item) => !listed.has(name(item))).slice(0, MOST_LISTED);
    for (const item of fresh) listed.add(name(item));
    return fresh;
  };

  // --- what became visible ---

  const met = new WeakSet();
  // How many videos and sounds began that were not there before.
  const play = () => {
    let count = 0;
    for (const tree of trees()) for (const one of tree.querySelectorAll('video, audio')) {
      if (met.has(one) || count === 20) continue;
      met.add(one);
      one.muted = true;
      one.preload = 'auto';
      one.play().catch(() => {});
      count++;
    }
    return count;
  };
  const news = () => {
    const links = [], lines = [];
    const add = (href, rel) => {
      if (typeof href !== 'string' || baseline.links.has(href)) return;
      baseline.links.add(href);
      if (links.length < MOST_LINKS) links.push(Object.assign(document.createElement('a'), {href, rel}).outerHTML);
    };
    for (const tree of trees()) for (const link of tree.querySelectorAll('a[href], area[href]')) add(link.href, link.rel);
    for (const [href, rel] of left) add(href, rel);
    left.clear();
    const text = (document.body && document.body.innerText || '').slice(0, MOST_TEXT);
    for (const line of text.split('\n')) {
      if (!line.trim() || baseline.lines.has(line)) continue;
      baseline.lines.add(line);
      lines.push(line);
    }
    return [location.href, links, lines];
  };

  globalThis.webdepot = {
    look,
    listen: (...nodes) => { for (const node of nodes) if (node instanceof HTMLElement) listening.add(node); },
    begin: () => {
      baseline = {links: new Set(), lines: new Set()};
      for (const tree of trees()) for (const one of tree.querySelectorAll('video, audio')) met.add(one);
      news();
    },
    play,
    click: (key) => {
      if (!targets.get(key)?.isConnected) find();
      const node = targets.get(key);
      if (!node) return 'gone';
      if (!(node instanceof HTMLOptionElement)) return press(node) ? 'handled' : isStopped ? 'stopped' : 'left';
      const menu = node.closest('select');
      menu.value = node.value;
      for (const name of ['input', 'change']) menu.dispatchEvent(new Event(name, {bubbles: true}));
      return 'handled';
    },
    // To a route after '#' whose link is no longer there.
    go: (href) => {
      if (withoutHash(href) !== withoutHash(location.href)) return 'gone';
      location.hash = new URL(href).hash;
      return 'handled';
    },
    news,
    // The label of the button that was clicked; '' if there is no consent banner.
    consent: () => {
      const found = [null, null];
      for (const tree of trees()) for (const node of tree.querySelectorAll('button, [role=button], input[type=button], a')) {
        const text = label(node), way = REJECT.test(text) ? 0 : ACCEPT.test(text) ? 1 : 2;
        if (way === 2 || found[way] || !mayClick(node) || !isShown(node)) continue;
        if (node instanceof HTMLAnchorElement && node.hasAttribute('href') && !isScript(node)
          && withoutHash(node.href) !== withoutHash(location.href)) continue;
        for (let box = node.parentElement || node.getRootNode().host; box && box !== document.body;
          box = box.parentElement || box.getRootNode().host) {
          const isDialog = box.matches('dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true]')
            || /^(fixed|sticky)$/.test(getComputedStyle(box).position);
          if (isDialog && ABOUT_CONSENT.test((box.shadowRoot || box).textContent.slice(0, 20000))) {
            found[way] = node;
            break;
          }
        }
      }
      const chosen = found[0] || found[1];
      if (!chosen) return '';
      press(chosen);
      return label(chosen) || '?';
    },
  };
})()
