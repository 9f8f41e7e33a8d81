"""Sites that a PHP program with a database serves: MediaWiki and WordPress from Debian's packages, which are
unpacked, not installed, and filled once with about fifty pages of content each. Besides the content they have
what such sites usually have: histories, discussions, replies, archives by date, a calendar, feeds, an API.
"""

import shutil
from pathlib import Path
from xml.etree import ElementTree

from bench.fidelity_sites import SQUARE, Site
from bench.fidelity_software import NotInstalled, _run, _write

PORTS = ("Emden", "Antwerp", "Bergen", "Cadiz", "Dover", "Esbjerg", "Gdynia", "Hull", "Izmir", "Kiel")
GOODS = ("grain", "timber", "salt", "wool", "tar")
WIKI_ARTICLES = tuple(f"{port} {goods}" for port in PORTS for goods in GOODS)
BLOG_POSTS = 50
DEBIAN = {
    "mediawiki": ("mediawiki", "mediawiki-classes"),
    "wordpress": (
        "wordpress",
        "wordpress-theme-twentytwentyone",
        "libphp-phpmailer",
        "php-getid3",
        "libjs-underscore",
        "libjs-cropper",
    ),
}


def build_mediawiki(kept: Path) -> Site:
    """A wiki with articles of several versions, discussions, categories, pictures and redirects."""
    _need("php", "apt-get", "dpkg-deb")
    root = kept / "mediawiki"
    wiki = root / "wiki"
    if not (wiki / "LocalSettings.php").exists():
        shutil.rmtree(root, ignore_errors=True)
        unpacked = _unpacked(root, "mediawiki") / "usr/share/mediawiki"
        for name in ("extensions", "images", "config", "LocalSettings.php"):
            (unpacked / name).unlink()  # links to folders that the package makes when it is installed
        shutil.move(unpacked, wiki)
        shutil.move(wiki / "extensions-core", wiki / "extensions")
        (wiki / "images").mkdir()
        _write(root, {"router.php": WIKI_ROUTER, "pictures/Ship.svg": SQUARE.format("olive")})
        (root / "articles.xml").write_bytes(_wiki_dump())
        php = ["php", "-d", "memory_limit=512M"]
        install = [*php, "maintenance/install.php", "--dbtype=sqlite", f"--dbpath={root}", "--scriptpath="]
        _run([*install, "--pass=harbour-master-1", "--with-extensions", "Harbour", "Master"], wiki)
        (wiki / "LocalSettings.php").rename(wiki / "settings.php")
        _write(wiki, {"LocalSettings.php": WIKI_SETTINGS})
        for script in (
            ["importImages.php", str(root / "pictures")],
            ["importDump.php", str(root / "articles.xml")],
            ["rebuildrecentchanges.php"],
            ["runJobs.php"],
        ):
            _run([*php, f"maintenance/{script[0]}", *script[1:]], wiki)
    articles = [f"/wiki/{title.replace(' ', '_')}" for title in WIKI_ARTICLES]
    pages = ("/wiki/Harbour_guide", *articles[::6], "/wiki/Category:Grain", "/wiki/Talk:Emden_grain")
    categories = (f"/wiki/Category:{name.title()}" for name in (*GOODS, "harbours"))
    talks = (article.replace("/wiki/", "/wiki/Talk:") for article in articles[::5])
    content = ("/wiki/Harbour_guide", *articles, *categories, *talks, "/wiki/File:Ship.svg")
    command = ("php", "-q", "-S", "{address}", "-t", str(wiki), str(root / "router.php"))
    return Site(
        name="MediaWiki",
        pages=pages,
        command=command,
        content=content,
        wget_rejects="action=|oldid=|veaction|Special:|returnto|printable=",
    )


WIKI_ROUTER = """<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if (preg_match('~^/[a-z_]+\\.php(/|$)~', $path) || is_file($_SERVER['DOCUMENT_ROOT'] . $path)) return false;
if ($path === '/' || str_starts_with($path, '/wiki/')) {
    $_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = '/index.php';
    chdir($_SERVER['DOCUMENT_ROOT']);
    require 'index.php';
} else {
    http_response_code(404);
}
"""
WIKI_SETTINGS = """<?php
require __DIR__ . '/settings.php';
$wgServer = 'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost');
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
$wgFileExtensions[] = 'svg';
$wgSVGNativeRendering = true;
$wgJobRunRate = 0;
"""


def _wiki_dump() -> bytes:
    """The articles in MediaWiki's format of exchange, with two versions each."""
    dump = ElementTree.Element("mediawiki", xmlns="http://www.mediawiki.org/xml/export-0.11/", version="0.11")
    texts = {
        "Harbour guide": "Welcome to the harbour.\n\n"
        + "".join(f"* [[{title}]]\n" for title in WIKI_ARTICLES[::5])
        + "\n[[Category:Harbours]]",
        **{f"Category:{goods.title()}": f"What is shipped as {goods}. [[Category:Harbours]]" for goods in GOODS},
        "Category:Harbours": "All harbours.",
        "Grain trade": "#REDIRECT [[Emden grain]]",
        "Help:Contents": "How to find a harbour: [[Harbour guide]].",
    }  # fmt: skip
    for number, title in enumerate(WIKI_ARTICLES):
        port, goods = title.split()
        following = WIKI_ARTICLES[(number + 1) % len(WIKI_ARTICLES)]
        texts[title] = (
            f"'''{title}''' is loaded in {port}.<ref>Harbour book, p. {number}</ref> [[File:Ship.svg|thumb|A ship]]\n\n"
            f"== Quays ==\n{port} has {number + 2} quays for {goods}. See [[{following}]] and [[{port} harbour]].\n\n"
            f"== Tides ==\n{{| class=\"wikitable\"\n! month !! metres\n|-\n| May || {number}\n|}}\n\n"
            f"== Notes ==\n<references/>\n[[Category:{goods.title()}]]"
        )  # fmt: skip
        if number % 5 == 0:
            texts[f"Talk:{title}"] = f"== Quays ==\nAre there really {number + 2}? ~ Ann\n: Yes. ~ Ben"
    for title, text in texts.items():
        page = ElementTree.SubElement(dump, "page")
        ElementTree.SubElement(page, "title").text = title
        ElementTree.SubElement(page, "ns").text = "0"
        for month, words in ((3, "A first version."), (4, text)):
            revision = ElementTree.SubElement(page, "revision")
            ElementTree.SubElement(revision, "timestamp").text = f"2025-0{month}-01T10:00:00Z"
            author = ElementTree.SubElement(revision, "contributor")
            ElementTree.SubElement(author, "username").text = "Master"
            ElementTree.SubElement(revision, "model").text = "wikitext"
            ElementTree.SubElement(revision, "format").text = "text/x-wiki"
            ElementTree.SubElement(revision, "text", {"xml:space": "preserve"}).text = words
    return ElementTree.tostring(dump, encoding="utf-8")


def build_wordpress(kept: Path) -> Site:
    """A blog with comments and replies, categories, tags, archives and a calendar; MariaDB runs beside it."""
    _need("php", "apt-get", "dpkg-deb", "mariadbd", "mariadb-install-db", "mariadb")
    root = kept / "wordpress"
    blog, database = root / "blog", root / "database"
    start = ("sh", str(root / "serve.sh"))
    if not (root / "filled").exists():
        shutil.rmtree(root, ignore_errors=True)
        unpacked = _unpacked(root, "wordpress")
        (unpacked / "usr/share/wordpress/wp-config.php").unlink()
        shutil.copytree(unpacked / "usr/share/wordpress", blog, ignore_dangling_symlinks=True)
        _write(
            root,
            {
                "router.php": BLOG_ROUTER,
                "fill.php": BLOG_FILL.replace("POSTS", str(BLOG_POSTS)),
                "serve.sh": BLOG_SERVE.replace("FOLDER", str(database)),
                "blog/wp-config.php": BLOG_SETTINGS.replace("SOCKET", f"{database}/socket"),
                "blog/wp-content/uploads/ship.svg": SQUARE.format("teal"),
            },
        )
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={database}", "--skip-test-db"]
        _run([*install, "--auth-root-authentication-method=normal", f"--user={Path.home().owner()}"], root)
        _run([*start, "php", str(root / "fill.php")], root)
        (root / "filled").touch()
    posts = [
        f"/{2023 + number // 12}/{number % 12 + 1:02}/10/ship-{number}/" for number in range(BLOG_POSTS - 20)
    ]
    pages = ("/", *posts[::4], "/harbour-1/", "/category/grain/", "/2024/05/")
    content = ("/", *posts, *(f"/harbour-{number}/" for number in range(20)))
    command = (*start, "php", "-q", "-S", "{address}", "-t", str(blog), str(root / "router.php"))
    return Site(name="WordPress", pages=pages, command=command, content=content)


BLOG_SERVE = """# Runs a program with the database beside it.
mariadbd --no-defaults --user="$(id -un)" --datadir="FOLDER" --socket="FOLDER/socket" --skip-networking &
database=$!
trap 'kill $database; wait $database' EXIT TERM
until mariadb --no-defaults --socket="FOLDER/socket" --user=root -e 'CREATE DATABASE IF NOT EXISTS blog'; do
  kill -0 $database || exit 1
  sleep 0.2
done
"$@"
"""
BLOG_ROUTER = """<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if ($path !== '/' && (is_file($file) || is_file("$file/index.php"))) return false;
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = '/index.php';
chdir($_SERVER['DOCUMENT_ROOT']);
require 'index.php';
"""
BLOG_SETTINGS = """<?php
define('DB_NAME', 'blog'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:SOCKET'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define($name . '_KEY', "a key $name"); define($name . '_SALT', "a salt $name");
}
define('WP_HOME', 'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost')); define('WP_SITEURL', WP_HOME);
define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true); define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
BLOG_FILL = """<?php
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'localhost'; $_SERVER['REQUEST_URI'] = '/';
require __DIR__ . '/blog/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/taxonomy.php';
wp_install('Ships', 'master', 'master@example.org', true, '', 'harbour-master-1');
update_option('permalink_structure', '/%year%/%monthnum%/%day%/%postname%/');
update_option('thread_comments', 1); update_option('show_avatars', 0);
switch_theme('twentytwentyone');
update_option('widget_block', [2 => ['content' => '<!-- wp:calendar /-->'], 3 => ['content' => '<!-- wp:archives /-->'],
    4 => ['content' => '<!-- wp:categories /-->'], 5 => ['content' => '<!-- wp:latest-comments /-->'],
    6 => ['content' => '<!-- wp:tag-cloud /-->'], '_multiwidget' => 1]);
update_option('sidebars_widgets', ['wp_inactive_widgets' => [], 'sidebar-1' =>
    ['block-2', 'block-3', 'block-4', 'block-5', 'block-6'], 'array_version' => 3]);
$goods = array_map('wp_create_category', ['Grain', 'Timber', 'Salt']);
$picture = '<!-- wp:html --><img src="/wp-content/uploads/ship.svg" alt="ship"><!-- /wp:html -->';
$publish = fn ($type, $name, $title, $text, $more = []) => wp_insert_post(['post_type' => $type, 'post_name' => $name,
    'post_title' => $title, 'post_content' => "$picture<p>$text</p>", 'post_status' => 'publish', 'post_author' => 1] + $more);
for ($n = 0; $n < POSTS - 20; $n++) {
    $date = sprintf('%d-%02d-10 10:00:00', 2023 + intdiv($n, 12), $n % 12 + 1);
    $id = $publish('post', "ship-$n", "The ship of load $n", "It carried load $n. " . str_repeat('Wind and wave. ', $n + 5),
        ['post_date' => $date, 'post_category' => [$goods[$n % 3]], 'tags_input' => ['port' . $n % 5]]);
    foreach ([1, 2] as $k) {
        $one = ['comment_post_ID' => $id, 'comment_approved' => 1, 'comment_author' => "Reader $k",
            'comment_author_email' => "reader$k@example.org", 'comment_date' => "2026-01-0$k 12:00:00"];
        $above = wp_insert_comment($one + ['comment_content' => "Remark $k on load $n"]);
        wp_insert_comment($one + ['comment_content' => "Answer $k on load $n", 'comment_parent' => $above]);
    }
}
for ($n = 0; $n < 20; $n++) $publish('page', "harbour-$n", "Harbour $n", "Its quays are $n metres deep.");
global $wp_rewrite; $wp_rewrite->init(); flush_rewrite_rules(false);
"""


def _need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            raise NotInstalled(f"{program} is not installed")


def _unpacked(root: Path, name: str) -> Path:
    """The files of a program's packages, in a folder that belongs to them alone."""
    packages, files = root / "packages", root / "files"
    packages.mkdir(parents=True)
    _run(["apt-get", "-q", "download", *DEBIAN[name]], packages)
    for package in sorted(packages.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(files)], root)
    return files
