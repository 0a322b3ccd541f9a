"""Words of software documentation and everyday English that turn a sentence round when exchanged."""

from __future__ import annotations

from ragbench_dagster.evaluation.words import stem

_PAIRS = """
enable/disable enabled/disabled allow/forbid allow/prohibit allow/block allow/deny allowed/forbidden permit/forbid
accept/reject approve/reject increase/decrease increase/reduce rise/fall rise/drop grow/shrink raise/lower higher/lower
maximum/minimum most/least more/less more/fewer before/after above/below open/closed open/close start/stop start/end
begin/end first/last early/late earlier/later include/exclude included/excluded required/optional mandatory/optional
public/private online/offline encrypted/unencrypted success/failure succeed/fail pass/fail valid/invalid
available/unavailable supported/unsupported possible/impossible able/unable same/different always/never free/paid
add/remove install/uninstall show/hide inbound/outbound upload/download import/export upgrade/downgrade
internal/external old/new long/short large/small big/small fast/slow strong/weak good/bad better/worse best/worst
win/lose profit/loss gain/loss true/false buy/sell agree/disagree positive/negative improve/worsen active/inactive
automatic/manual automatically/manually permanent/temporary high/low send/receive up/down monthly/annual monthly/yearly
daily/weekly weekly/monthly include/omit lock/unlock subscribe/unsubscribe connect/disconnect visible/hidden
read-only/writable safe/unsafe safe/dangerous legal/illegal inside/outside indoors/outdoors full/empty full/partial
all/none everyone/nobody ascending/descending expand/contract optimistic/pessimistic majority/minority rare/common
rarely/often
"""


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _PAIRS.split():
        one, other = (stem(word) for word in pair.split("/"))
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _table()
