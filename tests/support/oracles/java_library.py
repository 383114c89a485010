"""What Java's own library makes of texts: java.util.Properties, java.util.regex."""

import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_PROGRAM: Final = r"""
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.*;

public class Library {
    static String read(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }
    static String write(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return Base64.getEncoder().encodeToString(bytes);
    }
    static String properties(String text) throws IOException {
        Properties found = new Properties();
        found.load(new StringReader(text));
        StringBuilder told = new StringBuilder();
        for (String key : new TreeSet<>(found.stringPropertyNames())) {
            told.append(write(key)).append(',');
            told.append(write(found.getProperty(key))).append(',');
        }
        return told.toString();
    }
    static String replaced(String regex, String replacement, String topic) {
        Matcher matcher = Pattern.compile(regex).matcher(topic);
        return write(matcher.matches() ? matcher.replaceFirst(replacement) : topic);
    }
    public static void main(String[] none) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            try {
                System.out.println(parts.length == 1 ? properties(read(parts[0]))
                    : parts.length == 2 ? String.valueOf(Pattern.compile(read(parts[0]),
                        Pattern.CASE_INSENSITIVE).matcher(read(parts[1])).matches())
                    : replaced(read(parts[0]), read(parts[1]), read(parts[2])));
            } catch (RuntimeException error) {
                System.out.println("!");
            }
        }
    }
}
"""


def _ask(folder: Path, questions: Iterable[Iterable[str]]) -> list[str]:
    source = folder / "Library.java"
    source.write_text(_PROGRAM, "utf-8")
    asked = "".join(
        " ".join(b64encode(part.encode()).decode() for part in question) + "\n"
        for question in questions
    )
    done = subprocess.run(
        ["java", source],
        input=asked,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def properties(folder: Path, texts: Iterable[str]) -> list[dict[str, str] | None]:
    """Load each text as a .properties file; None: it is refused."""
    found: list[dict[str, str] | None] = []
    for line in _ask(folder, ([text] for text in texts)):
        parts = [b64decode(part).decode() for part in line.split(",")[:-1]]
        pairs = dict(zip(parts[::2], parts[1::2], strict=True))
        found.append(None if line == "!" else pairs)
    return found


def matched(folder: Path, pairs: Iterable[tuple[str, str]]) -> list[bool]:
    """Tell whether each expression matches the whole of its name, in any case."""
    return [line == "true" for line in _ask(folder, pairs)]


def replaced(folder: Path, routes: Iterable[tuple[str, str, str]]) -> list[str | None]:
    """Do what RegexRouter does: expression, replacement, topic; None: an error."""
    lines = _ask(folder, routes)
    return [None if line == "!" else b64decode(line).decode() for line in lines]
