"""The door: only regular files, never blocking; whatever a decoder raises is one fault."""

import json
import os
import socket

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import Undecodable, decoded, open_regular, read_regular, read_text
from ragbench_dagster.settings import load_settings, parse_settings


@pytest.fixture(params=["pipe", "link to a pipe", "socket", "device that never ends", "folder", "loop of links"])
def no_file(request, tmp_path):
    path = tmp_path / "input"
    kind = request.param
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to a pipe":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif kind == "device that never ends":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)
    return path


def test_what_is_no_regular_file_is_never_opened(no_file):
    with pytest.raises(OSError) as fault:
        open_regular(no_file)
    assert fault.value.strerror
    with pytest.raises(UserError, match=r"^input: cannot be read \("):
        read_text(no_file)


def test_a_regular_file_and_a_link_to_one_are_read(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfabc")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_text(tmp_path / "b") == "abc"
    with pytest.raises(OSError, match="longer than"):
        read_regular(tmp_path / "a", 5)


@pytest.mark.parametrize("raised", [RecursionError, OverflowError, MemoryError, KeyError, TypeError, UnicodeError])
def test_whatever_a_decoder_raises_is_one_fault_without_its_text(raised):
    def decode(text):
        raise raised(text)

    with pytest.raises(Undecodable) as fault:
        decoded(decode, "my name is")
    assert "my name" not in str(fault.value)


def test_an_interrupt_is_no_bad_input():
    def decode(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decoded(decode, "")


def test_a_decoder_of_the_library_is_used_as_it_is():
    assert decoded(json.loads, "[1]", parse_int=str) == ["1"]
    with pytest.raises(Undecodable, match="nested too deeply"):
        decoded(json.loads, "[" * 200_000)


MERGED = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 40)
)
LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)  # 9^11 values
SETTINGS = {
    "20,000 brackets": "[" * 20_000,
    "20,000 braces": "judge: " + "{a: " * 20_000,
    "20,000 dashes": "- " * 20_000,
    "a billion laughs": LAUGHS + "judge: {extra: {a: *a11}}",
    "merge keys that double": MERGED,
    "a key that is a list": "? [a]\n: b",
    "a key that is a number": "1: 2",
    "a day that is none": "traffic: {start: 2026-99-99}",
    "a number of 6,000 digits": "judge: {seed: " + "9" * 6_000 + "}",
    "a number of 300 digits for a float": "judge: {timeout_s: " + "9" * 400 + "}",
    "a class to make": "judge: !!python/object/apply:os.system ['true']",
    "a NUL": "judge: \x00",
    "a key twice": "judge: {seed: 1}\njudge: {seed: 2}",
    "a list at the top": "- a",
    "a bare word": "hello",
    "infinite time": "judge: {deadline_s: .inf}",
    "time that is no number": "judge: {timeout_s: .nan}",
    "a million workers": "judge: {concurrency: {max: 1000000}}",
    "a million processes": "scrub: {processes: 1000000}",
    "a million answers at once": "systems: {a: {kind: http, url: 'http://h/', concurrency: 1000000}}",
    "a window of a million years": "dataset: {window_days: 365000000}",
    "an age of a million years": "systems: {logged: {kind: logged, max_age_days: 365000000}}",
    "a start before the calendar": "traffic: {start: 0001-01-01}",
    "a k of 10^18": "metrics: [hit_rate@1000000000000000000]",
    "an unknown zone": "traffic: {timezone: Mars/Base}",
    "a zone that is a path": "traffic: {timezone: ../../etc/passwd}",
    "a pattern that is none": "scrub: {recognizers: [{entity: A, regex: '('}]}",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_hostile_settings_are_one_line(name):
    with pytest.raises(UserError) as fault:
        parse_settings(SETTINGS[name])
    said = str(fault.value)
    assert said.startswith("ragbench.yaml: ")
    assert "\n" not in said
    assert len(said) < 400


def test_a_settings_file_of_megabytes_is_not_parsed(tmp_path):
    (tmp_path / "ragbench.yaml").write_bytes(b"# \n" * 700_000)
    with pytest.raises(UserError, match="longer than 1 MiB"):
        load_settings(tmp_path / "ragbench.yaml")
