"""Sites made with the frameworks that most new sites use: Next.js, Nuxt, SvelteKit, Astro and Angular. Their pages are
rendered beforehand (Angular's in the browser), then taken over by scripts, which load data for the next page by
themselves when a reader follows a link.
"""

import json
import shutil
from pathlib import Path

from bench.fidelity_sites import SQUARE, Site
from bench.fidelity_software import SHIPS, _npm, _run, _write

NAMES = [name.lower() for name in SHIPS]
PATHS = ("/", "/about", *(f"/ship/{name}" for name in NAMES))
CSS = "body {font: 18px sans-serif; margin: 2em} nav a {margin-right: 1em} li {margin: 4px}"


def build_next(kept: Path) -> Site:
    """Next.js with its app router, exported to files: pages are fetched as React's own format when clicked."""
    place = _npm(kept, "next")
    _write(
        place,
        {
            "next.config.mjs": "export default { output: 'export', images: { unoptimized: true } }",
            "app/globals.css": CSS,
            "app/layout.jsx": NEXT_LAYOUT,
            "app/page.jsx": NEXT_HOME.replace("NAMES", json.dumps(NAMES)),
            "app/about/page.jsx": NEXT_ABOUT,
            "app/about/wind.jsx": "export default function Wind() { return <p>Wind from the west</p> }",
            "app/about/tide.jsx": "export default function Tide() { return <p>High water at six</p> }",
            "app/ship/[name]/page.jsx": NEXT_SHIP.replace("NAMES", json.dumps(NAMES)),
            "public/ship.svg": SQUARE.format("teal"),
        },
    )
    _run(["node_modules/.bin/next", "build"], place)
    return Site(name="Next.js", pages=PATHS, folder=place / "out")


NEXT_LAYOUT = """import Link from 'next/link'
import './globals.css'
export const metadata = { title: 'Ships' }
export default function Layout({ children }) {
  return <html lang='en'><body><nav><Link href='/'>Ships</Link><Link href='/about'>About</Link></nav>{children}</body></html>
}
"""
NEXT_HOME = """import Link from 'next/link'
import Image from 'next/image'
export default function Home() {
  return <><h1>Ships</h1><Image src='/ship.svg' width={120} height={60} alt=''/>
    <ul>{NAMES.map(name => <li key={name}><Link href={'/ship/' + name}>{name}</Link></li>)}</ul></>
}
"""
NEXT_ABOUT = """'use client'
import dynamic from 'next/dynamic'
import { useState, useEffect } from 'react'
const Tide = dynamic(() => import('./tide'), { ssr: false })
const Wind = dynamic(() => import('./wind'), { ssr: false })
export default function About() {
  const [ready, setReady] = useState(false)
  useEffect(() => setReady(true), [])
  return <><h1>About</h1><p>{ready ? 'The scripts are at work' : 'Waiting'}</p><Tide/><Wind/></>
}
"""
NEXT_SHIP = """import Link from 'next/link'
export const generateStaticParams = () => NAMES.map(name => ({ name }))
export default async function Ship({ params }) {
  const { name } = await params
  const next = NAMES[(NAMES.indexOf(name) + 1) % NAMES.length]
  return <><h1>{name}</h1><p>The {name} carries {name.length}00 tons.</p><Link href={'/ship/' + next}>Next: {next}</Link></>
}
"""


def build_sveltekit(kept: Path) -> Site:
    """SvelteKit, rendered to files: data of a page is fetched from `__data.json` when it is clicked."""
    place = _npm(kept, "sveltekit")
    ship = "{data.name}"
    _write(
        place,
        {
            "svelte.config.js": "import adapter from '@sveltejs/adapter-static';\nexport default { kit: { adapter: adapter() } };",
            "vite.config.js": "import { sveltekit } from '@sveltejs/kit/vite';\nexport default { plugins: [sveltekit()] };",
            "src/app.html": "<!doctype html><html lang='en'><head><meta charset='utf-8'><link rel='stylesheet' href='%sveltekit.assets%/ships.css'>"
            "%sveltekit.head%</head><body data-sveltekit-preload-data='hover'><div>%sveltekit.body%</div></body></html>",
            "src/routes/+layout.js": "export const prerender = true;",
            "src/routes/+layout.svelte": "<script>let { children } = $props()</script><nav><a href='/'>Ships</a><a href='/about'>About</a></nav>{@render children()}",
            "src/routes/+page.svelte": "<h1>Ships</h1><ul>" + "".join(f"<li><a href='/ship/{name}'>{name}</a></li>" for name in NAMES) + "</ul>",
            "src/routes/about/+page.svelte": "<script>import { onMount } from 'svelte'; let tide = $state('waiting'); onMount(async () => {"
            "tide = (await import('$lib/tide.js')).default })</script><h1>About</h1><p>{tide}</p>",
            "src/lib/tide.js": "export default 'High water at six'",
            "src/routes/ship/[name]/+page.server.js": "export const load = ({ params }) => ({ name: params.name, tons: params.name.length * 100, left: new Date(2025, 4, 1) })",
            "src/routes/ship/[name]/+page.svelte": "<script>let { data } = $props()</script><svelte:head><title>" + ship + "</title></svelte:head><h1>" + ship + "</h1>"
            "<img src='/ship.svg' alt=''><p>{data.tons} tons, sailed in {data.left.getFullYear()}</p>",
            "static/ships.css": CSS,
            "static/ship.svg": SQUARE.format("crimson"),
        },
    )  # fmt: skip
    shutil.rmtree(place / "build", ignore_errors=True)
    _run(["node_modules/.bin/vite", "build"], place)
    return Site(name="SvelteKit", pages=PATHS, folder=place / "build")


def build_astro(kept: Path) -> Site:
    """Astro with transitions between pages, and an island whose script is loaded when it comes into view."""
    place = _npm(kept, "astro")
    links = "".join(f"<li><a href='/ship/{name}/'>{name}</a></li>" for name in NAMES)
    _write(
        place,
        {
            "astro.config.mjs": "export default { prefetch: true, devToolbar: { enabled: false }, telemetry: false }",
            "src/layout.astro": "---\nimport { ClientRouter } from 'astro:transitions'\nconst { title } = Astro.props\n---\n<html lang='en'><head><meta charset='utf-8'>"
            "<title>{title}</title><link rel='stylesheet' href='/ships.css'><ClientRouter/></head><body><nav><a href='/'>Ships</a><a href='/about/'>About</a></nav>"
            "<h1>{title}</h1><slot/><p id='seen'></p><script>let seen = 0; document.addEventListener('astro:page-load', () => { document.getElementById('seen').textContent ="
            " 'The script is at work' })</script></body></html>",
            "src/pages/index.astro": f"---\nimport Layout from '../layout.astro'\n---\n<Layout title='Ships'><ul>{links}</ul></Layout>",
            "src/pages/about.astro": "---\nimport Layout from '../layout.astro'\n---\n<Layout title='About'><p>The harbour office.</p></Layout>",
            "src/pages/ship/[name].astro": "---\nimport Layout from '../../layout.astro'\nexport const getStaticPaths = () => NAMES.map(name => ({ params: { name } }))\n"
            "const { name } = Astro.params\n---\n<Layout title={name}><img src='/ship.svg' alt=''><p>{name.length}00 tons</p></Layout>".replace("NAMES", json.dumps(NAMES)),
            "public/ships.css": CSS,
            "public/ship.svg": SQUARE.format("navy"),
        },
    )  # fmt: skip
    _run(["node_modules/.bin/astro", "build"], place)
    pages = tuple(path if path == "/" else f"{path}/" for path in PATHS)
    return Site(name="Astro", pages=pages, folder=place / "dist")


def build_nuxt(kept: Path) -> Site:
    """Nuxt, generated: data of a page is fetched from `_payload.json` when it is clicked."""
    place = _npm(kept, "nuxt")
    _write(
        place,
        {
            "nuxt.config.mjs": "export default { telemetry: false, css: ['~/assets/ships.css'], nitro: { prerender: { crawlLinks: true, routes: ['/'] } } }",
            "app.vue": "<template><nav><NuxtLink to='/'>Ships</NuxtLink><NuxtLink to='/about'>About</NuxtLink></nav><NuxtPage/></template>",
            "pages/index.vue": "<template><div><h1>Ships</h1><ul><li v-for='name in names' :key='name'><NuxtLink :to='`/ship/${name}`'>{{ name }}</NuxtLink></li></ul></div></template>"
            f"<script setup>const names = {json.dumps(NAMES)}</script>",
            "pages/about.vue": "<template><div><h1>About</h1><ClientOnly fallback='Waiting'><p>The scripts are at work</p></ClientOnly></div></template>",
            "pages/ship/[name].vue": "<script setup>const route = useRoute(); const { data } = await useAsyncData(`ship-${route.params.name}`, () => $fetch(`/api/${route.params.name}`))</script>"
            "<template><div><h1>{{ data.name }}</h1><img src='/ship.svg' alt=''><p>{{ data.tons }} tons</p></div></template>",
            "server/api/[name].js": "export default defineEventHandler(event => ({ name: event.context.params.name, tons: event.context.params.name.length * 100 }))",
            "assets/ships.css": CSS,
            "public/ship.svg": SQUARE.format("olive"),
        },
    )  # fmt: skip
    _run(["node_modules/.bin/nuxt", "generate"], place)
    return Site(name="Nuxt", pages=PATHS, folder=place / ".output/public", fallback="/200.html")


def build_angular(kept: Path) -> Site:
    """Angular: an app without any page on the server, whose parts are loaded when they are opened."""
    place = _npm(kept, "angular")
    routes = "{path: '', loadComponent: () => import('./home')}, {path: 'about', loadComponent: () => import('./about')}, {path: 'ship/:name', loadComponent: () => import('./ship')}"
    _write(
        place,
        {
            "angular.json": json.dumps(ANGULAR),
            "tsconfig.json": json.dumps({"compilerOptions": {"target": "ES2022", "module": "ES2022", "moduleResolution": "bundler", "experimentalDecorators": True, "skipLibCheck": True}, "files": ["src/main.ts"]}),
            "src/index.html": "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Ships</title><base href='/'></head><body><app-root></app-root></body></html>",
            "src/styles.css": CSS,
            "src/main.ts": "import { Component } from '@angular/core';\nimport { bootstrapApplication } from '@angular/platform-browser';\nimport { provideHttpClient } from '@angular/common/http';\n"
            "import { provideRouter, RouterLink, RouterOutlet } from '@angular/router';\n@Component({selector: 'app-root', imports: [RouterLink, RouterOutlet],"
            " template: `<nav><a routerLink='/'>Ships</a><a routerLink='/about'>About</a></nav><router-outlet/>`})\nclass App {}\n"
            f"bootstrapApplication(App, {{providers: [provideHttpClient(), provideRouter([{routes}])]}});\n",
            "src/home.ts": "import { Component } from '@angular/core';\nimport { RouterLink } from '@angular/router';\n@Component({imports: [RouterLink], template: `<h1>Ships</h1><ul>"
            "@for (name of names; track name) { <li><a [routerLink]=\"['/ship', name]\">{{ name }}</a></li> }</ul>`})\n" + f"export default class Home {{ names = {json.dumps(NAMES)}; }}\n",
            "src/about.ts": "import { Component } from '@angular/core';\n@Component({template: `<h1>About</h1>@defer (on idle) { <p>The scripts are at work</p> } @placeholder { <p>Waiting</p> }`})\nexport default class About {}\n",
            "src/ship.ts": "import { Component, inject } from '@angular/core';\nimport { AsyncPipe } from '@angular/common';\nimport { HttpClient } from '@angular/common/http';\nimport { ActivatedRoute } from '@angular/router';\n"
            "import { switchMap } from 'rxjs';\n@Component({imports: [AsyncPipe], template: `@if (ship | async; as ship) { <h1>{{ ship.name }}</h1><img src='/ship.svg' alt=''><p>{{ ship.tons }} tons</p> }`})\n"
            "export default class Ship { http = inject(HttpClient); ship = inject(ActivatedRoute).params.pipe(switchMap(({name}) => this.http.get<any>(`/data/${name}.json`))); }\n",
            "public/ship.svg": SQUARE.format("maroon"),
            **{f"public/data/{name}.json": json.dumps({"name": name, "tons": 100 * len(name)}) for name in NAMES},
        },
    )  # fmt: skip
    _run(["node_modules/.bin/ng", "build"], place)
    return Site(name="Angular", pages=PATHS, folder=place / "dist/ships/browser", fallback="/index.html")


def build_storybook(kept: Path) -> Site:
    """Storybook: a frame shows what the query of the address names, and the app around it changes that query."""
    place = _npm(kept, "storybook")
    _write(
        place,
        {
            ".storybook/main.js": "export default { stories: ['../src/*.stories.js'], addons: ['@storybook/addon-essentials'], framework: '@storybook/html-vite',"
            " core: { disableTelemetry: true, disableWhatsNewNotifications: true } }",
            **{
                f"src/{name}.stories.js": f"export default {{ title: '{name}' }}\nexport const Afloat = () => '<h2>The {name} is afloat</h2>'\n"
                f"export const Docked = () => '<h2>The {name} is docked</h2><img src=ship.svg>'\n"
                for name in NAMES
            },
            "public/ship.svg": SQUARE.format("gold"),
        },
    )  # fmt: skip
    _run(["node_modules/.bin/storybook", "build", "--quiet", "-o", "site"], place)
    shutil.copy(place / "public/ship.svg", place / "site")
    pages = ("/", *(f"/?path=/story/{name}--{state}" for name in NAMES[:3] for state in ("afloat", "docked")))
    return Site(name="Storybook", pages=pages, folder=place / "site")


ANGULAR = {
    "version": 1,
    "cli": {"analytics": False},
    "projects": {
        "ships": {
            "projectType": "application",
            "root": "",
            "sourceRoot": "src",
            "architect": {
                "build": {
                    "builder": "@angular/build:application",
                    "options": {
                        "outputPath": "dist/ships",
                        "index": "src/index.html",
                        "browser": "src/main.ts",
                        "polyfills": ["zone.js"],
                        "tsConfig": "tsconfig.json",
                        "assets": [{"glob": "**/*", "input": "public"}],
                        "styles": ["src/styles.css"],
                    },
                }
            },
        }
    },
}
