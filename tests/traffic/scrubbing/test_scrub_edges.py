"""Border of the kind: an identifier ends where its own alphabet ends, whatever the script beside it.

Letters of a script without spaces never glue; ASCII letters and digits do.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber, residual

# Letters of scripts that are written without spaces, or glue particles to the word before.
BESIDE = ["号", "我的", "です", "ください", "カ", "를", "입니다", "ครับ", "ที่", "ကို", "ខ្ញុំ", "ຂ້ອຍ", "ﾃﾞｽ", "𠀀", "々", "ㄅ"]
FOUND = {
    "CREDIT_CARD": ["4111111111111111", "5555-5555-5555-4444", "3782 822463 10005"],
    "IBAN_CODE": ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "fr1420041010050500013m02606"],
    "IP_ADDRESS": ["192.0.2.10", "198.51.100.0/24", "2001:db8::17", "2001:db8:0:1:1:1:1:1"],
    "MAC_ADDRESS": ["00:00:5E:00:53:AF", "00-00-5e-00-53-af", "0000.5e00.53af"],
    "EMAIL_ADDRESS": ["jane.roe@example.com", "jane+tag@mail.example.co.uk", "jörg@büro.example"],
    "PHONE_NUMBER": ["+442079460958", "+44 20 7946 0958", "(202) 555-0143"],
    "URL": ["https://example.com/a?id=7", "http://example.com:8080/x", "wss://example.org/s"],
    "SECRET": ["sk-proj-aB3dE5fG7hJ9kL2mN4pQ", "ghp_aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7", "AKIAIOSFODNN7EXAMPLE"],
    "US_SSN": ["078-05-1120"],
    "CRYPTO": ["1BoatSLRHtKNngkdXEeobR76b53LETtpyT"],
}
ALL = [(entity, value) for entity, values in FOUND.items() for value in values]


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return build_scrubber(Scrub(ner="off"))


@pytest.mark.parametrize(("entity", "value"), ALL, ids=[v for _, v in ALL])
def test_a_letter_of_a_script_without_spaces_neither_hides_nor_joins_an_identifier(scrubber, entity, value):
    for before in BESIDE:
        for after in BESIDE:
            text = before + value + after
            found = [(s.type, text[s.start : s.end]) for s in scrubber.spans(text)]
            assert found == [(entity, value)], text


@pytest.mark.parametrize(
    ("entity", "value"),
    [(e, v) for e, v in ALL if e in ("CREDIT_CARD", "IBAN_CODE", "EMAIL_ADDRESS", "PHONE_NUMBER", "US_SSN")]
    + [("IP_ADDRESS", "192.0.2.10")],
)
def test_the_independent_check_sees_it_there_too_and_is_quiet_once_it_is_gone(scrubber, entity, value):
    value = value.upper() if entity == "IBAN_CODE" else value
    if not value.isascii():
        return  # the check knows no such mail host
    for letter in BESIDE:
        text = letter + value + letter
        assert residual([text]) == {entity: 1}, text
        assert residual([scrubber.texts([text])[0].text]) == {}, text


@pytest.mark.parametrize(
    "text",
    [
        "x4111111111111111", "4111111111111111x1", "74111111111111111", "a_4111111111111111", "4111111111111111_b",
        "xDE89370400440532013000", "DE89370400440532013000x1", "7DE89370400440532013000",
        "x00:00:5E:00:53:AF", "00:00:5E:00:53:AF1", "f00:00:5E:00:53:AF", "a_00:00:5E:00:53:AF", "00:00:5E:00:53:AF_b",
        "x078-05-1120", "078-05-1120x", "a_078-05-1120", "078-05-1120_b",
        "192.0.2.10_b", "192.0.2.10.x", "xAKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE_b",
    ],
)  # fmt: skip
def test_an_ascii_letter_or_digit_makes_it_part_of_a_longer_identifier(scrubber, text):
    assert residual([text]) == {}
    assert scrubber.spans(text) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("我的邮箱是jane.roe@example.com收不到邮件", ["我的邮箱是", "收不到邮件"]),
        ("почтаjane@example.comне приходит", ["почта", "не приходит"]),
        ("请看https://example.com/a?b=1这个页面", ["请看", "这个页面"]),
        ("密码是Tr0ub4dor&3不对", ["密码是", "不对"]),
        ("令牌token: abcd1234efgh失效了", ["失效了"]),
        ("メールはjane@example.co.jpです", ["メールは", "です"]),
        ("이메일은 jane@example.com입니다", ["이메일은 ", "입니다"]),
        ("我的邮箱是用户@例子.公司收不到", ["我的邮箱是", "收不到"]),
    ],
)
def test_the_sentence_around_an_address_stays(scrubber, text, kept):
    done = scrubber.texts([text])[0]
    assert len(done.spans) == 1
    assert [k for k in kept if k not in done.text] == []


@pytest.mark.parametrize(
    "text",
    [
        "版本4.18.0.1无法启动", "バージョン10.1.1.45です", "버전 2.41.3.0을 설치", "версия 4.18.0.1 падает",
        "订单号1796000000002失败", "注文番号12345678901です", "房间12号3楼", "2026年11月30日下午3点", "第4111章", "主文 std::vector 和 a::b",
        "价格是1,234.56元", "错误代码0x80070057出现", "12:30:45开始", "文件README.md找不到", "@property是什么",
    ],
)  # fmt: skip
def test_numbers_of_a_text_without_spaces_that_are_nobodys_stay(scrubber, text):
    assert scrubber.spans(text) == []
    assert residual([text]) == {}


FAR_EAST = [(0x3041, 0x30FA), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x0E01, 0x0E30), (0x20000, 0x2A6DF)]
LETTERS = st.text(
    st.one_of([st.characters(categories=["Lo"], min_codepoint=a, max_codepoint=b) for a, b in FAR_EAST]),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(before=LETTERS, after=LETTERS, value=st.sampled_from([v for e, v in ALL if e != "PHONE_NUMBER"]))
def test_any_letters_of_the_far_east_around_an_identifier_leave_it_found_and_stay_themselves(
    scrubber, before, after, value
):
    done = scrubber.texts([before + value + after])[0]
    assert value not in done.text
    assert done.text.startswith(before)
    assert done.text.endswith(after)


def test_an_allowed_phrase_and_a_repeated_name_have_the_same_edges():
    kept = build_scrubber(Scrub(ner="off", allow=["Anna Testerson"]))
    assert kept.spans("请问Anna Testerson产品怎么用") == []
    done = build_scrubber(Scrub(ner="off")).request("my name is Borgildha Quux", "你好Borgildha Quux先生")
    assert done.response == "你好<PERSON_1>先生"
