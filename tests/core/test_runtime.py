"""One place for what a process keeps: closed, the process is as new; settings are parsed once for each content."""

import os
import threading

import pytest

from ragbench_dagster import settings
from ragbench_dagster.errors import UserError
from ragbench_dagster.runtime import Runtime
from ragbench_dagster.store import Workspace


def test_close_frees_each_value_and_forgets_it():
    runtime, ended = Runtime(), []
    pools, plain = runtime.registry("pools", ended.append), runtime.registry("plain")
    pools["a"], pools["b"], plain["c"] = 1, 2, 3
    runtime.close()
    assert (pools, plain, ended) == ({}, {}, [1, 2])
    pools["d"] = 4
    assert runtime.names == ["plain", "pools"]
    runtime.close()
    assert ended == [1, 2, 4]


def test_two_registries_of_one_name_are_a_mistake():
    runtime = Runtime()
    runtime.registry("limiters")
    with pytest.raises(ValueError, match="limiters"):
        runtime.per_thread("limiters")


def test_a_thread_sees_its_own_values_and_close_forgets_those_of_all():
    runtime = Runtime()
    kept = runtime.per_thread("scrubbers")
    kept.kept["here"] = 1
    seen: list[dict[str, int]] = []
    thread = threading.Thread(target=lambda: seen.append(dict(kept.kept)))
    thread.start()
    thread.join()
    assert seen == [{}]
    runtime.close()
    assert kept.kept == {}


@pytest.fixture
def parsed(monkeypatch):
    """The texts that were parsed."""
    texts: list[str] = []
    parse = settings.parse_settings

    def noted(text: str, name: str = "") -> settings.Settings:
        texts.append(text)
        return parse(text, name)

    monkeypatch.setattr(settings, "parse_settings", noted)
    return texts


def test_the_settings_are_parsed_once_and_again_when_the_file_changed(tmp_path, parsed):
    file = tmp_path / "ragbench.yaml"
    file.write_text("metrics: ['hit_rate@5']")
    opened = [Workspace.open(tmp_path) for _ in range(5)]
    assert len(parsed) == 1
    assert {ws.settings.metrics[0] for ws in opened} == {"hit_rate@5"}
    before = file.stat()
    file.write_text("metrics: ['hit_rate@7']")  # as long as before
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # and as old
    assert Workspace.open(tmp_path).settings.metrics == ["hit_rate@7"]
    assert len(parsed) == 2
    file.unlink()
    assert Workspace.open(tmp_path).settings == settings.Settings()


def test_a_wrong_file_is_told_each_time_and_the_mended_one_is_read(tmp_path, parsed):
    file = tmp_path / "ragbench.yaml"
    file.write_text("metric: []")
    for _ in range(2):
        with pytest.raises(UserError, match=r"ragbench.yaml: metric: unknown key"):
            Workspace.open(tmp_path)
    file.write_text("metrics: []")
    assert Workspace.open(tmp_path).settings.metrics == []


def test_two_workspaces_have_settings_of_their_own(tmp_path, parsed):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ragbench.yaml").write_text(f"metrics: ['hit_rate@{len(name) + ord(name)}']")
    first, second, again = (Workspace.open(tmp_path / name).settings.metrics for name in "aba")
    assert first == again != second
    assert len(parsed) == 2
