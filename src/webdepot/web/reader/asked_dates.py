"""The date that a reader asked for: a box to type it, and words in the banner if the version shown is from
another day.

An address with a date leads to the address of the closest version. The date that was asked for travels in a
cookie, for the one page that follows: the query and the fragment of an archived address belong to that
address.
"""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot import times
from webdepot.model import EVERYTHING
from webdepot.web.language.language import Language, read_date
from webdepot.web.replay import address
from webdepot.web.site import language_of, render, site_of

COOKIE = "asked-date"
LASTS_S = 60
_DAY_DIGITS = 8
"""Of a timestamp: the banner names days, so a version of the same day is the one asked for."""


def go(request: Request) -> Response:
    """`/-/go?collection=…&url=…&date=…`: redirect to the version closest to a typed date."""
    query = request.query_params
    collection, typed = query.get("collection") or EVERYTHING, query.get("date", "")
    if not address.COLLECTION.match(collection):
        raise address.BadAddress("errors.text_collection", collection=collection[:60])
    url = address.archived_url(query.get("url", ""))
    try:
        digits = read_date(typed)
    except ValueError:
        wrong = language_of(request).say("answers.wrong_date", date=typed[:40])
        return render(
            request,
            "go_to_date.html",
            status=400,
            wrong=wrong,
            url=url,
            collection=collection,
            date=typed[:40],
        )
    return RedirectResponse(address.path_of(collection, digits, url), status_code=303)


def remember(request: Request, response: Response, asked: str, shown: str) -> Response:
    """Note on a redirect which date was asked for, if the version shown is from another time."""
    if asked and not shown.startswith(asked[:_DAY_DIGITS]):
        site = site_of(request)
        response.set_cookie(
            site.cookie_name(COOKIE),
            f"{asked}-{shown}",
            max_age=LASTS_S,
            httponly=True,
            samesite="lax",
            secure=site.archive.config.web.secure_cookies,
        )
    return response


def forget(request: Request, response: Response) -> Response:
    """Remove the note, so that a later visit to the version does not show it."""
    name = site_of(request).cookie_name(COOKIE)
    if name in request.cookies:
        response.delete_cookie(name, httponly=True, samesite="lax")
    return response


def words(request: Request, shown: str) -> str:
    """What the banner says if another date was asked for than that of the version shown; else empty."""
    date_text, _, noted = request.cookies.get(site_of(request).cookie_name(COOKIE), "").partition("-")
    if noted != shown:
        return ""
    try:
        period = times.period_of(date_text[:_DAY_DIGITS])
    except ValueError:
        return ""
    spoken, moment = language_of(request), times.moment_of(shown)
    if moment in period:
        return ""
    key = "answers.asked_earlier" if moment < period.start else "answers.asked_later"
    return spoken.say(key, asked=_named(date_text, spoken), shown=spoken.date(shown))


def _named(asked: str, spoken: Language) -> str:
    """A year, a month or a day in words."""
    if len(asked) < 6:
        return asked[:4]
    if len(asked) < 8:
        return f"{spoken.months[int(asked[4:6]) - 1]} {asked[:4]}"
    return spoken.date(asked)
