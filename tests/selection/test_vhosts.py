"""Configurations of Apache and nginx: the hosts in them, and their errors by file and line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.selection.domains import apache, vhosts
from webdepot.selection.domains.vhosts import NameKind


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_conf", ".conf")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_apache_with_includes_variables_and_continued_lines(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        apache_conf="Define SITE museum.example\nServerRoot /nowhere\nIncludeOptional sites/*.conf\n"
        "<IfModule mod_ssl.c>\nInclude ssl.conf\n</IfModule>\n",
        sites__a_conf="<VirtualHost *:80>\n  # ServerName commented.example\n  ServerName www.${SITE}:80\n"
        "  ServerAlias ${SITE} \\\n     old.museum.example *.wild.example\n</VirtualHost>\n",
        ssl_conf='<VirtualHost *:443>\nServerName "https://secure.museum.example"\n</VirtualHost>\n',
    )
    found = vhosts.read([folder / "apache.conf"])
    assert set(found.hosts) == {
        "www.museum.example",
        "museum.example",
        "old.museum.example",
        "secure.museum.example",
    }
    wild = next(item for item in found.hosted if item.kind is NameKind.WILDCARD)
    assert (wild.name, Path(wild.file).name, wild.line) == ("*.wild.example", "a.conf", 4)
    assert [finding.code for finding in found.findings] == ["vhost-open-name"]


def test_apache_errors_name_their_line(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a_conf="ServerName ok.example\n</Directory>\nInclude b.conf\nInclude none.conf\n<VirtualHost *>\nServerAlias 'open\n",
    )
    write(folder, b_conf="Include a.conf\n")
    found = vhosts.read([folder / "a.conf"])
    assert found.hosts == ("ok.example",)
    told = {(finding.place, finding.message.split(":")[0]) for finding in found.findings}
    assert ("line 2", "</Directory> has no opening tag") in told
    assert ("line 4", "Include none.conf") in told
    assert ("line 5", "<virtualhost> is never closed") in told
    assert ("line 6", "No closing quotation") in told
    assert any("circle" in finding.message for finding in found.findings)


def test_nginx_with_includes_regular_expressions_and_errors(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        nginx_conf=f"events {{}}\nhttp {{\n include {tmp_path}/sites/*.conf;\n include {tmp_path}/none.conf;\n}}\n",
        sites__a_conf="server { listen 80; server_name www.museum.example .museum.example _ localhost; }\n"
        "server { server_name ~^(www\\.)?tour\\.example$ ~^(?<sub>.+)\\.any\\.example$ *.wild.example; # "
        "server_name not.example;\n }\n",
        sites__b_conf="server { server_name broken.example; \n",
    )
    found = vhosts.read([folder / "nginx.conf"])
    assert set(found.hosts) >= {"www.museum.example", "museum.example", "tour.example"}
    assert "not.example" not in found.hosts
    kinds = {item.name: item.kind for item in found.hosted}
    assert kinds["*.wild.example"] is NameKind.WILDCARD
    assert NameKind.REGEX in kinds.values()
    assert {Path(finding.subject).name for finding in found.findings if finding.code == "vhost-error"} == {
        "nginx.conf",
        "b.conf",
    }


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        sites__a_conf="server { server_name a.example; }",
        sites__b_conf="<VirtualHost *>\nServerName b.example\n</VirtualHost>",
    )
    found = vhosts.read([folder / "sites", folder / "missing"])
    assert set(found.hosts) == {"a.example", "b.example"}
    assert [finding.code for finding in found.findings] == ["vhost-missing"]


@given(st.text(max_size=300))
def test_no_text_breaks_the_readers(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.conf"
    path.write_text(f"ServerName a.example\n{text}", encoding="utf-8", errors="replace")
    apache.read(path)
    path.write_text(f"server {{ server_name a.example; {text} }}", encoding="utf-8", errors="replace")
    vhosts.read([path])
