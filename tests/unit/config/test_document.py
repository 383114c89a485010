"""Files: TOML and a careful YAML, and every way in which they can be bad."""

from pathlib import Path

import pytest

from walstream.config.document import LARGEST_FILE, read
from walstream.errors import ConfigError


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(folder: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        read(write(folder, name, content))
    assert str(folder / name) in str(caught.value)
    return str(caught.value)


def test_toml_and_yaml_read_the_same(tmp_path: Path) -> None:
    toml = write(tmp_path, "a.toml", 'a.b = "x"\na.list = [1, true]\nf = 1.5\n')
    yaml = write(tmp_path, "a.yml", "a:\n  b: x\n  list: [1, true]\nf: 1.5\n")
    assert read(toml) == read(yaml) == {"a": {"b": "x", "list": [1, True]}, "f": 1.5}


def test_yaml_words_mean_what_they_look_like(tmp_path: Path) -> None:
    text = "a: no\nb: 010\nc: 1:30\nd: 2020-01-01\ne: 0x10\nf: 1_000\ng: ~\nno: x\n"
    expected = {
        "a": "no",
        "b": "010",
        "c": "1:30",
        "d": "2020-01-01",
        "e": "0x10",
        "f": "1_000",
        "g": None,
        "no": "x",
    }
    assert read(write(tmp_path, "a.yaml", text)) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: !!python/object/apply:os.system [cAnArY]", "tags"),
        ("a: !cAnArY x", "tags"),
        ("a: !!str x", "tags"),
        ("a: &cAnArY [x]\nb: x", "anchors"),
        ("a: *cAnArY", "anchors"),
        ("a: {b: 1}\n<<: {c: cAnArY}\n<<: {d: 1}", "twice"),
        ("a: cAnArY\na: 2", "twice"),
        ("b:\n  a: 1\n  a: cAnArY", "twice"),
        ("? [cAnArY]\n: 1", "not a text"),
        ("a: 'cAnArY", "not valid YAML"),
        ("a: [cAnArY\nb: c", "not valid YAML"),
        ("a: b: cAnArY", "not valid YAML"),
        ("%TAG !cAnArY! x\n", "not valid YAML"),
        ("a: \x01cAnArY", "not valid YAML"),
        ("- cAnArY", "holds no keys"),
        ("cAnArY", "holds no keys"),
        ("a: 1\n---\nb: cAnArY", "not valid YAML"),
        ("a: " + "[" * 5000, "deeper"),
        ("a: " + "{a: " * 50, "deeper"),
        ("a: " + "9" * 5000, "not valid YAML"),
    ],
)
def test_bad_yaml_is_refused_without_a_word_of_it(
    tmp_path: Path, text: str, complaint: str
) -> None:
    shown = refusal(tmp_path, "a.yaml", text)
    assert complaint in shown
    assert "cAnArY" not in shown


def test_a_billion_laughs_are_refused_at_the_first(tmp_path: Path) -> None:
    lines = ["a0: &a0 [ha]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "line 1" in refusal(tmp_path, "a.yaml", "\n".join(lines))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = ", "line 1"),
        ("a = 1\nb = cAnArY", "line 2"),
        ('a = "cAnArY', "line 1"),
        ("a = 1\na = 2", "line 2"),
        ("[a]\n[a]", "twice"),
        ("a = " + "[" * 100_000, "deeper"),
        ("a" + ".a" * 100 + " = 1", "deeper"),
    ],
)
def test_bad_toml_is_refused_with_its_line(
    tmp_path: Path, text: str, complaint: str
) -> None:
    shown = refusal(tmp_path, "a.toml", text)
    assert complaint in shown
    assert "cAnArY" not in shown


@pytest.mark.parametrize("name", ["a.toml", "a.yaml"])
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"# a comment\n", "nothing but comments"),
        (b"# x\n\xff\xfe", "line 2: is not UTF-8"),
        (b"#" * (LARGEST_FILE + 1), "larger than 1 MiB"),
    ],
)
def test_no_configuration_is_said_so(
    tmp_path: Path, name: str, content: bytes, complaint: str
) -> None:
    assert complaint in refusal(tmp_path, name, content)


@pytest.mark.parametrize(
    ("text", "yaml"),
    [
        ("sources:\n  app:\n    kind: postgres\n", True),
        ('# a comment\n---\n"state": /tmp/x\n', True),
        ("state = [\n", False),
        ("[sources.app]\ndsn: x\n", False),
    ],
)
def test_yaml_under_a_toml_name_is_told_its_name(
    tmp_path: Path, text: str, yaml: bool
) -> None:
    meant = f"it looks like YAML: name it {tmp_path / 'a.yaml'}"
    assert (meant in refusal(tmp_path, "a.toml", text)) is yaml


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.toml", b"\xef\xbb\xbfa = 1")) == {"a": 1}


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    assert ".toml" in refusal(tmp_path, "a.json", "{}")


def test_a_missing_file_a_folder_and_a_closed_file_are_told_apart(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read(tmp_path / "a.toml")
    with pytest.raises(ConfigError, match="folder"):
        read(tmp_path)
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "loop.toml")
