"""The second question before something that cannot be undone.

A form that asks for such a thing is answered with a page that says what will happen, with a button that sends
the same form again and a link back. It works without scripts.
"""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from webdepot.web.site import here, render

FIELD = "confirmed"


def ask(
    request: Request, form: Mapping[str, str], act: str, *, back: str, subject: str = ""
) -> Response | None:
    """The page that asks once more, with the texts `confirm.ACT`; None if the person has answered it.

    `back` is the page of the form, and `subject` names the thing in question.
    """
    if form.get(FIELD) == "yes":
        return None
    return render(
        request,
        "confirm.html",
        act=act,
        subject=subject,
        back=back,
        action=here(request),
        fields=[(name, value) for name, value in form.items() if name != FIELD],
        here=back,
    )
