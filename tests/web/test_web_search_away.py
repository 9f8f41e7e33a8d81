"""The portal while the search server does not answer: everything but search by words works."""

from museum import EDITIONS, NOW, SITE, Served, ask, serving, sign_in

import databases
from ports import free_port
from webdepot.archive import Archive
from webdepot.config.config import FILE_NAME
from webdepot.services.admin import archive_status
from webdepot.services.admin.doctor import doctor


def test_search_by_words_is_away_and_the_rest_works(served: Served, tmp_path):
    home = databases.copy_home(served.home, tmp_path / "home")
    server = f"http://127.0.0.1:{free_port()}"
    config = home / FILE_NAME
    chosen = f'[index]\nengine = "opensearch"\nopensearch_url = "{server}"\n'
    config.write_text(config.read_text().replace("[index]\n", chosen))
    with serving(home) as running:
        answer = ask(f"{running.portal}/search?q=clock")
        assert answer.status == 502
        assert "Search by words is not available at the moment." in answer.text
        assert server not in answer.text
        dutch = ask(f"{running.portal}/search?q=clock", headers={"Accept-Language": "nl"})
        assert "Zoeken op woorden is op dit moment niet beschikbaar." in dutch.text
        problem = ask(f"{running.portal}/api/search?q=clock")
        assert problem.status == 502 and server not in problem.text
        for path in ("/", f"/all/*/{SITE}/", "/collections/museums"):
            assert ask(f"{running.portal}{path}").status == 200, path
        for path in (f"{EDITIONS[0]}id_/{SITE}/", f"{EDITIONS[3]}id_/{SITE}/leaflet.pdf"):
            assert ask(f"{running.replay}/all/{path}").status == 200, path
        cookie = sign_in(running, "curator")
        assert ask(f"{running.portal}/status", headers={"Cookie": cookie}).status == 200
    checks = {check.name: check for check in doctor.examine(home)}
    assert checks["text index"].state == "error"
    assert checks["text index"].message.startswith(f"The search server {server} does not answer (")
    with Archive.open(home, clock=lambda: NOW) as archive:
        assert archive_status.status(archive).texts is None
