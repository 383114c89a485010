"""What another configuration changes."""

from pathlib import Path
from typing import Any

from walstream.config import Config
from walstream.service.config_changes import Effective, Reloaded, own_changes
from walstream.state.control_message import ErrorAnswer, ReloadAnswer


def config(**top: Any) -> Config:
    document: dict[str, Any] = {
        "sources": {
            name: {"kind": "postgres", "dsn": f"host={name}", "sinks": sinks}
            for name, sinks in {"app": ["kafka"], "shop": ["kafka", "log"]}.items()
        },
        "sinks": {
            "kafka": {
                "kind": "kafka",
                "producer": {"bootstrap.servers": "localhost:9092"},
            },
            "log": {"kind": "log"},
        },
    }
    return Config.model_validate({**document, **top})


def changes(before: Config, after: Config, source: str = "app") -> list[str]:
    found = Effective.of(before, source).changes(Effective.of(after, source))
    return list(found)


def with_(section: str, name: str, **changed: Any) -> Config:
    """Give one of which a source or sink has other keys."""
    made = config().model_dump(mode="json")
    made[section][name] |= changed
    return Config.model_validate(made)


def test_nothing_changes_where_nothing_is_different() -> None:
    assert changes(config(), config()) == []
    assert list(own_changes(config(), config())) == []


def test_a_key_of_its_own_is_named_with_its_path() -> None:
    assert changes(config(), with_("sources", "app", slot="other")) == [
        "sources.app.slot"
    ]


def test_a_secret_is_not_shown() -> None:
    other = with_("sinks", "kafka", producer={"sasl.password": "hidden-word"})
    found = changes(config(), other)
    assert "sinks.kafka.producer.sasl.password" in found
    assert "hidden-word" not in repr(Effective.of(other, "app"))


def test_what_belongs_to_another_source_changes_nothing() -> None:
    made = config().model_dump(mode="json")
    made["sinks"]["log"] = {"kind": "discard"}
    for other in (with_("sources", "shop", slot="other"), Config.model_validate(made)):
        assert changes(config(), other) == []
        assert changes(config(), other, "shop") != []


def test_what_all_go_by_changes_all_but_what_is_the_supervisors() -> None:
    assert changes(config(), config(memory="64MiB")) == ["memory"]
    own = {
        "http": {"listen": "", "token": "x" * 20},
        "log_level": "debug",
        "stats_interval": "5s",
        "reload_grace": "1s",
    }
    assert changes(config(), config(**own)) == []
    assert set(own_changes(config(), config(**own))) == {
        "http.listen",
        "http.token",
        "log_level",
        "stats_interval",
        "reload_grace",
    }


def test_a_file_that_was_replaced_is_a_change(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("old")
    named = with_("sinks", "kafka", producer={"ssl.ca.location": str(authority)})
    before = Effective.of(named, "app")
    assert list(before.changes(Effective.of(named, "app"))) == []
    authority.with_suffix(".new").write_text("new")
    authority.with_suffix(".new").rename(authority)
    assert list(before.changes(Effective.of(named, "app"))) == [str(authority)]


def test_an_answer_tells_what_is_wrong_or_what_was_done() -> None:
    assert Reloaded("broken", 2).answer == ErrorAnswer("broken", 2)
    lines = ("source 'app' begins again",)
    done = Reloaded(changes=("memory",), lines=lines)
    assert done.answer == ReloadAnswer(("memory",), lines)
