"""Bytes to numbered lines: gzip members, damage, marks, and what ends a line."""

import gzip
import io

from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.traffic import lines
from ragbench_dagster.traffic.lines import Damaged, numbered_lines, text_chunks


def read(data: bytes) -> tuple[list[tuple[int, bytes | None]], Damaged | None]:
    found, damage = [], None
    try:
        for item in numbered_lines(text_chunks(io.BytesIO(data))):
            found.append(item)
    except Damaged as fault:
        damage = fault
    return found, damage


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b), max_size=8))
def test_only_lf_ends_a_line(parts):
    data = b"\n".join(parts)
    want = [(n, p.removesuffix(b"\r")) for n, p in enumerate(parts, 1)]
    if want:
        want[0] = (1, parts[0].removeprefix(lines.BOM).removesuffix(b"\r"))
    while want and want[-1][1] == b"" and not parts[want[-1][0] - 1]:
        want.pop()  # nothing stands after the last LF
        break
    if data[:2] != lines.GZIP_MAGIC:
        assert read(data)[0] == want


def test_unicode_line_boundaries_stay_inside_a_line():
    text = "a\u2028b\u0085c\u2029d\x0ce"
    assert read((text + "\nsecond").encode())[0] == [(1, text.encode()), (2, b"second")]


def test_byte_order_mark_and_crlf_are_dropped():
    assert read(b"\xef\xbb\xbfone\r\ntwo\r\n")[0] == [(1, b"one"), (2, b"two")]


def test_mark_is_found_in_a_gzip_member_of_one_byte():
    data = b"".join(gzip.compress(bytes([b])) for b in b"\xef\xbb\xbfone\n")
    assert read(data)[0] == [(1, b"one")]


def test_gzip_members_and_zero_padding_are_one_stream():
    data = gzip.compress(b"one\ntw") + gzip.compress(b"o\nthree\n") + b"\0" * 512 + gzip.compress(b"four") + b"\0" * 7
    found, damage = read(data)
    assert [line for _, line in found] == [b"one", b"two", b"three", b"four"]
    assert damage is None


def test_bytes_after_the_last_member_are_told_and_the_rows_kept():
    found, damage = read(gzip.compress(b"one\ntwo\n") + b"garbage")
    assert [line for _, line in found] == [b"one", b"two"]
    assert "no gzip" in str(damage)


def test_truncated_gzip_keeps_what_could_be_unpacked_wherever_it_is_cut():
    rows = [b"%d some text that compresses %d" % (n, n * 7919) for n in range(400)]
    whole = gzip.compress(b"\n".join(rows) + b"\n")
    kept = []
    for cut in range(2, len(whole), 37):
        found, damage = read(whole[:cut])
        assert str(damage) == "truncated gzip"
        complete = [line for n, line in found if n != damage.cut]
        assert complete == rows[: len(complete)]
        kept.append(len(complete))
    assert kept == sorted(kept)
    assert kept[-1] > 300


def test_broken_byte_inside_gzip_keeps_the_rows_before_it():
    rows = [b"row %d %d" % (n, n * 104729 % 1000003) for n in range(20_000)]
    whole = bytearray(gzip.compress(b"\n".join(rows)))
    whole[len(whole) // 2] ^= 0xFF
    found, damage = read(bytes(whole))
    assert damage is not None
    complete = [line for n, line in found if n != damage.cut]
    # Deflate may decode a few wrong bytes before it notices; everything well before the broken byte is right.
    assert complete[:8000] == rows[:8000]


def test_line_beyond_the_limit_is_reported_and_the_next_one_read(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    found, _ = read(b"a" * 1000 + b"\n" + b"b" * 1001 + b"\n" + b"c" * 200_000 + b"\nd\n")
    assert [(n, None if x is None else len(x)) for n, x in found] == [(1, 1000), (2, None), (3, None), (4, 1)]


def test_gzip_bomb_is_unpacked_piece_by_piece(monkeypatch):
    monkeypatch.setattr(lines, "PIECE", 1 << 16)
    sizes = [len(chunk) for chunk in text_chunks(io.BytesIO(gzip.compress(b"\0" * (8 << 20))))]
    assert sum(sizes) == 8 << 20
    assert max(sizes) <= 1 << 16
