"""Pages of the search corpus as HTML in the style of their year: tables, divisions, HTML 5; with menus, scripts,
style sheets, images and links.
"""

from bench.search_corpus import State


def html(state: State) -> bytes:
    """A page with the text in the style of its year: layout by tables, divisions or HTML 5. There is about
    four times as much markup as text, as in the archive for which the limits were set (25 kB with 6.7 kB of
    text); pages of today have far more.
    """
    year = int(state.stamps[0][:4])
    return (_tables if year < 2010 else _divisions if year < 2017 else _sections)(
        state, _Pieces(state)
    ).encode()


class _Pieces:
    """Parts of all pages: paragraphs, headings, a menu, links to other pages and to other sites."""

    def __init__(self, state: State) -> None:
        self.words = state.text.split(" ")
        self.paragraphs = [" ".join(self.words[at : at + 60]) + "." for at in range(0, len(self.words), 60)]
        self.headings = state.headings.split("\n")
        self.menu = [
            (f"/section/{at}/index.html", self.words[at % len(self.words)].capitalize()) for at in range(24)
        ]
        self.related = [
            (f"/{self.words[-at % len(self.words)]}/{at}.html", " ".join(self.words[at * 5 : at * 5 + 5]))
            for at in range(1, 13)
        ]
        self.away = [
            (f"https://www.partner{at}.example/{self.words[0]}/", f"Partner {at}") for at in range(3)
        ]


def _tables(state: State, of: _Pieces) -> str:
    menu = "".join(
        f'<tr><td width="12" bgcolor="#003366"><img src="/images/spacer.gif" width="12" height="1" '
        'alt=""></td>\n<td bgcolor="#003366">'
        f'<font face="Verdana, Arial" size="1" color="#FFFFFF"><a href="{href}" class="menu" '
        f"onMouseOver=\"MM_swapImage('m{at}','',"
        f"'/images/menu_{at}_on.gif',1)\" "
        f'onMouseOut="MM_swapImgRestore()"><b>{words}</b></a></font></td></tr>\n'
        for at, (href, words) in enumerate(of.menu)
    )
    links = "".join(
        f'<tr valign="top"><td><font face="Verdana" size="1">&#149;&nbsp;<a '
        f'href="{href}">{words}</a></font><br></td></tr>\n'
        for href, words in (*of.related, *of.away)
    )
    text = "".join(
        f'<p align="justify"><font face="Verdana, Arial, Helvetica" size="2" '
        f'color="#333333">{words}</font></p>\n<br>\n'
        for words in of.paragraphs
    )
    headings = "".join(
        f'<h2 align="left"><font face="Verdana" size="3" color="#003366">{words}</font></h2>\n'
        for words in of.headings
    )
    script = "".join(
        f"  if (document.images) {{ img{at} = new Image(); img{at}.src = '/images/menu_{at}_on.gif'; }}\n"
        for at in range(24)
    )
    return (
        '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" '
        '"http://www.w3.org/TR/html4/loose.dtd">\n<html><head>'
        f'<meta http-equiv="Content-Type" content="text/html; charset=utf-8"><title>{state.title}</title>\n'
        f'<script language="JavaScript">\n<!--\n{script}//-->\n</script></head>\n<body bgcolor="#FFFFFF" '
        'text="#000000" leftmargin="0">\n'
        '<table width="780" border="0" cellspacing="0" cellpadding="0"><tr><td colspan="3"><img '
        'src="/images/header.jpg" '
        f'width="780" height="90" alt="{of.words[0]} {of.words[1]}"></td></tr>\n<tr valign="top"><td '
        'width="160"><table border="0" '
        f'cellspacing="1" cellpadding="2">\n{menu}</table></td>\n<td '
        f'width="460"><h1>{state.title}</h1>\n{headings}{text}</td>\n'
        f'<td width="160"><table>{links}</table></td></tr>\n<tr><td colspan="3"><font size="1">Copyright. '
        "All rights reserved.</font>"
        "</td></tr></table></body></html>"
    )


def _divisions(state: State, of: _Pieces) -> str:
    style = "".join(
        f"#block-{at} .content "
        f"{{ margin: 0 0 {at}px 12px; background: url(/sites/themes/x/images/b{at}.png) repeat-x; float: left; }}\n"
        for at in range(25)
    )
    script = "".join(
        f"_gaq.push(['_trackEvent', 'block-{at}', 'view', '{of.menu[at % 24][1]}', {at}, true]);\n"
        for at in range(25)
    )
    menu = "".join(
        f'<li id="menu-item-{100 + at}" class="menu-item menu-item-type-post_type menu-item-object-page '
        f'menu-item-{100 + at}">'
        f'<a href="{href}" title="{words}"><span class="menu-icon"></span><span '
        f'class="menu-text">{words}</span></a></li>\n'
        for at, (href, words) in enumerate(of.menu)
    )
    links = "".join(
        f'<div class="views-row views-row-{at}"><div class="views-field views-field-title"><span '
        'class="field-content">'
        f'<a href="{href}" rel="bookmark" class="teaser-link">{words}</a></span></div>\n<div '
        'class="views-field views-field-date">'
        f'<span class="date-display-single">{at}-{at % 12 + 1}-2012</span></div></div>\n'
        for at, (href, words) in enumerate((*of.related, *of.away))
    )
    shares = "".join(
        f'<div class="share share-{name}"><a href="https://www.{name}.example/share?u={state.url}" '
        'target="_blank" rel="nofollow" '
        f'class="share-button"><img src="/sites/all/modules/share/{name}.png" width="16" height="16" '
        f'alt="{name}" /></a></div>\n'
        for name in ("facebook", "twitter", "linkedin", "hyves", "delicious", "mail")
    )
    text = "".join(f'<p class="body-text" style="text-align: left;">{words}</p>\n' for words in of.paragraphs)
    headings = "".join(
        f'<div class="field field-name-subtitle"><h2 class="subtitle">{words}</h2></div>\n'
        for words in of.headings
    )
    return (
        f'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">\n<html '
        f'xmlns="http://www.w3.org/1999/xhtml" lang="{state.language}"><head><meta charset="utf-8" '
        f"/><title>{state.title}</title>\n"
        f'<style type="text/css">\n{style}</style>\n<script '
        f'type="text/javascript">\n{script}</script></head>\n<body class="page node">\n'
        f'<div id="wrapper"><div id="header"><img src="/logo.png" alt="{of.words[2]}" /></div>\n<div '
        'id="navigation" class="nav"><ul>'
        f'{menu}</ul></div>\n<div id="main"><div id="content" class="column"><h1 '
        f'class="title">{state.title}</h1>\n{headings}{text}'
        f'</div>\n<div id="sidebar" class="column sidebar">{links}{shares}</div></div>\n<div id="footer" '
        'class="footer"><p>Copyright. All '
        "rights reserved.</p></div></div></body></html>"
    )


def _sections(state: State, of: _Pieces) -> str:
    data = ",".join(
        f'{{"id":"block-{at}","type":"teaser","props":{{"href":"{href}","label":"{words}","visible":true,"weight":{at},"theme":"default"}}}}'
        for at, (href, words) in enumerate((*of.related, *of.menu))
    )
    menu = "".join(
        f'<li class="c-navigation__item c-navigation__item--level-1"><a class="c-navigation__link js-track" '
        'data-event="nav" '
        f'data-label="{at}" aria-haspopup="false" href="{href}"><svg class="icon" aria-hidden="true" '
        f'viewBox="0 0 24 24"><path d="M12 {at}'
        f"c-6.63 0-12 5.37-12 12s5.37 12 12 12 12-5.37 "
        f'12-12-5.37-12-12-12z"/></svg><span>{words}</span></a></li>\n'
        for at, (href, words) in enumerate(of.menu)
    )
    cards = "".join(
        f'<article class="c-card c-card--small"><a class="c-card__link" href="{href}"><picture><source '
        'type="image/webp" '
        f'srcset="/media/{at}-320.webp 320w, /media/{at}-640.webp 640w, /media/{at}-1280.webp 1280w" '
        'sizes="(min-width: 64em) 20vw, 90vw">'
        f'<img class="c-card__image" loading="lazy" src="/media/{of.words[at]}-{at}.jpg" alt="{words}" '
        'width="320" height="180">'
        f'</picture><h3 class="c-card__title">{words}</h3></a></article>\n'
        for at, (href, words) in enumerate(of.related)
    )
    away = "".join(
        f'<li><a href="{href}" rel="noopener external" target="_blank">{words}</a></li>\n'
        for href, words in of.away
    )
    text = "".join(
        f'<div class="o-block o-block--text" data-block="{at}"><p class="u-margin-bottom">{words}</p></div>\n'
        for at, words in enumerate(of.paragraphs)
    )
    headings = "".join(
        f'<h2 class="c-heading c-heading--2" id="h-{at}">{words}</h2>\n'
        for at, words in enumerate(of.headings)
    )
    links = "".join(
        f'<link rel="preload" as="script" crossorigin href="/_next/static/chunks/{at:032x}.js">\n'
        for at in range(10)
    )
    return (
        f'<!doctype html><html lang="{state.language}" class="no-js"><head><meta '
        f'charset="utf-8"><title>{state.title}</title>\n'
        f'<meta property="og:title" content="{state.title}">{links}</head>\n<body '
        'class="page">\n<header><nav aria-label="Main" '
        f'class="c-navigation"><ul>{menu}</ul></nav></header>\n<main id="main"><article '
        f'class="c-article"><h1>{state.title}</h1>\n'
        f'{headings}{text}<ul class="c-links">{away}</ul></article></main>\n<aside '
        f'class="c-related">{cards}</aside>\n<footer '
        f'class="footer"><p>Copyright. All rights reserved.</p></footer>'
        f'<script id="__DATA__" type="application/json">{{"blocks":[{data}]}}</script>'
        "</body></html>"
    )
