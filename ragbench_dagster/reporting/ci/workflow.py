"""The workflow that `ragbench init --github-actions` writes."""

from __future__ import annotations

TEXT = """\
# Written by: ragbench init --github-actions
#
# pull request   a sampled gate on 100 examples, the same each time. It can fail or be inconclusive, never
#                pass: 100 examples cannot show that nothing was lost. From a fork there is no judge key:
#                retrieval metrics decide, judge metrics are inconclusive (exit code 3), and nothing is green.
# nightly, hand  the whole night.
#
# `pull_request` and not `pull_request_target`: code of a fork must never run beside a secret.
name: ragbench
on:
  pull_request:
  schedule:
    - cron: "0 2 * * *"   # UTC
  workflow_dispatch:
    inputs:
      date:
        description: "Night (YYYY-MM-DD), empty for the last one"
        required: false
permissions:
  contents: read
concurrency:
  group: ragbench-${{ github.ref }}
  cancel-in-progress: ${{ github.event_name == 'pull_request' }}
env:
  RAGBENCH_WORKSPACE: .
jobs:
  sampled:
    if: github.event_name == 'pull_request'
    runs-on: ubuntu-latest
    timeout-minutes: 30
    env:
      OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}   # empty on forks
    steps:
      - uses: actions/checkout@v4
        with:
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install ragbench-dagster
      - name: Night on a fixed, stratified sample
        run: |
          code=0
          ragbench run --sample 100 --json > night.json || code=$?
          # 0 pass, 1 fail, 3 inconclusive have a night to show; anything else is an error of the run itself
          case "$code" in 0|1|3) ;; *) exit "$code" ;; esac
      - name: Gate
        run: ragbench gate --sample 100 --format github
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: ragbench-sampled
          path: |
            night.json
            store/nights-sample-100/*/report.html
          if-no-files-found: ignore
  night:
    if: github.event_name != 'pull_request'
    runs-on: ubuntu-latest
    timeout-minutes: 180
    env:
      OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}
      RAGBENCH_KEY: ${{ secrets.RAGBENCH_KEY }}
      NIGHT: ${{ inputs.date }}   # through the environment: an input must not become part of the script
    steps:
      - uses: actions/checkout@v4
        with:
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      # Releases and the ledger: nothing is judged or paid for twice. Pull requests, those of forks too, can
      # read this cache: where scrubbed questions must stay inside, keep the store on object storage instead.
      - uses: actions/cache@v4
        with:
          path: store
          key: ragbench-store-${{ github.run_id }}
          restore-keys: ragbench-store-
      # The secret of the keyed hashes, so that re-delivered requests are known again. Make one with:
      #   python -c "import secrets; print(secrets.token_hex(32))"
      - name: Key
        if: env.RAGBENCH_KEY != ''
        run: (umask 077; echo "$RAGBENCH_KEY" > .key)
      - run: pip install ragbench-dagster
      - name: Night
        run: |
          code=0
          ragbench run ${NIGHT:+--date "$NIGHT"} --json > night.json || code=$?
          case "$code" in 0|1|3) ;; *) exit "$code" ;; esac
      - name: Gate
        run: ragbench gate ${NIGHT:+--date "$NIGHT"} --format github
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: ragbench-night
          path: |
            night.json
            store/nights/*/report.html
          if-no-files-found: ignore
"""


def github_workflow() -> str:
    """The text of `.github/workflows/ragbench.yml`."""
    return TEXT
