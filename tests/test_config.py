"""The configuration: defaults, file and environment; invalid values are reported with the remedy."""

from pathlib import Path

import pytest

from webdepot.config import config as configuration
from webdepot.errors import ConfigError
from webdepot.services.admin import setup


def write(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "webdepot.toml").write_text(text, encoding="utf-8")
    return home


def test_a_home_without_a_file_has_the_defaults(tmp_path):
    config = configuration.read(tmp_path, {})
    assert config.harvest.delay_s == 1.0
    assert not config.harvest.allow_private
    assert config.sources == {}


def test_the_environment_overrides_the_file_and_both_are_named(tmp_path):
    home = write(tmp_path, '[harvest]\ndelay_s = 3\nworkers = 4\n[archive]\nname = "Ours"\n')
    config = configuration.read(home, {"WEBDEPOT_HARVEST_WORKERS": "9"})
    assert (config.harvest.delay_s, config.harvest.workers, config.archive.name) == (3.0, 9, "Ours")
    shown = {setting.name: setting for setting in configuration.iter_settings(config)}
    assert shown["harvest.workers"].source == "WEBDEPOT_HARVEST_WORKERS"
    assert shown["harvest.delay_s"].source.endswith("webdepot.toml")
    assert shown["web.port"].source == "default"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[harvest]\ndelai_s = 3", ["delai_s", "delay_s"]),
        ("[harvset]\ndelay_s = 3", ["harvset", "harvest"]),
        ('[harvest]\ndelay_s = "long"', ["delay_s", "a number"]),
        ("[harvest]\nworkers = 0", ["workers", "at least 1"]),
        ("[harvest]\nworkers = 1.5", ["workers", "whole number"]),
        ("[harvest]\nworkers = true", ["workers", "whole number"]),
        ('[harvest]\nscope = "galaxy"', ["scope", "host, domain, prefix, any"]),
        ("[web]\nport = 70000", ["port", "65535"]),
        ('[archive]\ndemo = "maybe"', ["demo", "true or false"]),
        ('[archive]\nlanguages = "en', ["not valid TOML"]),
        ("[harvest]\nconnect_to = [1]", ["connect_to", "table"]),
        ("harvest = 3", ["[harvest]"]),
    ],
)
def test_an_invalid_file_is_reported_with_key_and_remedy(tmp_path, text, words):
    with pytest.raises(ConfigError) as raised:
        configuration.read(write(tmp_path, text), {})
    for word in words:
        assert word in str(raised.value)


def test_the_file_written_by_init_reads_as_the_defaults(tmp_path):
    home = tmp_path / "new"
    setup.create(home)
    assert configuration.read(home, {}).sources == {}
    text = (home / "webdepot.toml").read_text(encoding="utf-8")
    for setting in configuration.iter_settings(configuration.read(home, {})):
        assert setting.doc in text


def test_every_commented_line_of_that_file_is_valid_when_uncommented(tmp_path):
    home = tmp_path / "new"
    setup.create(home)

    def uncommented(line: str) -> str:
        return (
            line[2:]
            if line.startswith("# ") and line[2:].partition(" = ")[0].isidentifier() and " = " in line
            else line
        )

    lines = map(uncommented, (home / "webdepot.toml").read_text(encoding="utf-8").splitlines())
    config = configuration.read(write(home, "\n".join(lines)), {})
    defaults = configuration.read(tmp_path / "nowhere", {})
    assert len(config.sources) == len(list(configuration.iter_settings(defaults)))
    for one, other in zip(configuration.iter_settings(config), configuration.iter_settings(defaults)):
        assert one.value == other.value


def test_settings_given_to_init_are_in_the_file(tmp_path):
    home = tmp_path / "new"
    setup.create(home, settings='[archive]\nname = "Museum"')
    assert configuration.read(home, {}).archive.name == "Museum"
