"""The workflow of `init --github-actions`: forks are safe, never green by silence, and the night is scheduled."""

import re

import pytest
import yaml

from ragbench_dagster.reporting.ci.workflow import github_workflow


@pytest.fixture
def workflow():
    return yaml.safe_load(github_workflow())


def test_it_never_runs_a_forks_code_beside_a_secret(workflow):
    triggers = workflow[True]  # YAML reads `on` as true
    assert set(triggers) == {"pull_request", "schedule", "workflow_dispatch"}
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        checkout = next(s for s in job["steps"] if str(s.get("uses", "")).startswith("actions/checkout"))
        assert checkout["with"]["persist-credentials"] is False
        assert "ref" not in checkout["with"]


def test_pull_requests_run_a_sampled_gate_and_the_night_runs_on_schedule_and_by_hand(workflow):
    sampled, night = workflow["jobs"]["sampled"], workflow["jobs"]["night"]
    commands = "\n".join(step.get("run", "") for step in sampled["steps"])
    assert "ragbench run --sample 100" in commands
    assert "ragbench gate --sample 100 --format github" in commands
    assert "== 'pull_request'" in sampled["if"]
    assert "!= 'pull_request'" in night["if"]
    assert "--sample" not in "\n".join(step.get("run", "") for step in night["steps"])


def test_no_expression_is_pasted_into_a_script(workflow):
    """An input with a quote in it would become part of the command."""
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")


def test_the_gates_exit_code_is_the_jobs(workflow):
    for job in workflow["jobs"].values():
        gate = next(s for s in job["steps"] if s.get("name") == "Gate")
        assert "continue-on-error" not in gate
        assert "||" not in gate["run"]
        assert not re.search(r";\s*true", gate["run"])


def test_an_error_of_the_run_itself_is_not_swallowed(workflow):
    for job in workflow["jobs"].values():
        (run,) = [s["run"] for s in job["steps"] if "ragbench run" in s.get("run", "")]
        assert "0|1|3) ;; *) exit" in run


def test_secrets_are_never_written_to_a_cache(workflow):
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "cache" in str(step.get("uses", "")):
                assert ".key" not in str(step["with"])
