"""Names that a person announces in scripts and languages without capitals, or without spaces between words.

The words before the name leave no doubt; where it ends is said by the script: a stop word or a sign after it, or
in Chinese, Japanese and Korean the usual length of a name and the particle behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragbench_dagster.traffic.scrubbing.prefilter import Facts, holds
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

_HAN = "\u3400-\u9fff々"
_SURNAMES = (
    "王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何林罗羅高郑鄭梁谢謝宋唐许許邓鄧冯馮韩韓曹曾彭萧肖蔡潘田董袁于余叶葉蒋蔣杜苏蘇魏程吕呂丁沈任姚卢盧傅钟鐘姜崔谭譚廖范汪陆陸金石戴贾賈韦韋夏邱方侯邹鄒熊孟秦白江"
    "阎薛尹段雷黎史龙龍陶贺賀顾顧毛郝龚龔邵万萬钱錢严嚴赖賴覃洪武莫孔欧歐司诸葛"
)
_AFTER_ZH = (
    r"(?=[，。,.!！?？、；;：:\s）)「」的是在想要无不有和了来去用为與与，]|[\"']|\Z|无法|不能|登录|想问|请问|我)"
)
# Chinese: 我叫 leaves no doubt; 我是 needs a family name and an end right behind the name.
_CHINESE = (
    re.compile(
        rf"(?:我叫做?|我的名字(?:是|叫)|名字(?:是|叫)|我姓名是|姓名(?:是|为|[:：])|联系人[:：]|收件人[:：])\s?(?!必|什|谁|哪|错|空|否|可|已|未|不)(?P<n>[{_HAN}·]{{2,4}}?){_AFTER_ZH}"
    ),
    re.compile(rf"我叫做?(?P<n>[{_SURNAMES}][{_HAN}]{{1,2}})"),
    re.compile(rf"(?:我是|本人)(?P<n>[{_SURNAMES}][{_HAN}]{{1,2}})(?=[，。,.!！、；;\s]|\Z)"),
)
_ROLE_ZH = re.compile(r"[生员員户戶客人者师師工商民手友们們]\Z")
_NAME_JA = rf"(?!何|必須|正し|間違|変更|不要|誰|未|登録|どこ|空|表示|なん|同じ)[{_HAN}\u3041-\u30ff]{{1,8}}?(?:[ \u3000・][{_HAN}\u3041-\u30ff]{{1,8}}?)?"
_JAPANESE = (
    re.compile(
        rf"(?:名前は|氏名は|名は|氏名[:：]|お名前[:：])\s?(?P<n>{_NAME_JA})(?=です|だ|と申|と言|といい|でございます|[、。,.\s]|\Z)"
    ),
    re.compile(rf"(?:\A|[、。,.\s]|私は|わたしは|僕は)(?P<n>{_NAME_JA})(?=と申します|と申す|といいます|と言います)"),
)
_HANGUL = "\uac00-\ud7a3"
_NAME_KO = rf"[{_HANGUL}]{{2,4}}"
_KO_SURNAMES = "김이박최정강조윤장임한오서신권황안송전홍유고문양손배백허남심노하곽성차주우구민진지엄채원천방공현함변염여추도소석선설마길연위표명기반라왕금옥육인맹제모탁국"
_KOREAN = (
    re.compile(
        rf"(?:이름은|이름이|성함은|성명은|성명[:：]|이름[:：])\s?(?P<n>{_NAME_KO}?)(?=입니다|이에요|예요|이고|라고|이라고|이며|이야|야|[,.!\s]|\Z)"
    ),
    re.compile(rf"(?:저는|나는|제가)\s(?P<n>[{_KO_SURNAMES}][{_HANGUL}]{{2}})(?=입니다|이라고|라고 |이에요|예요)"),
)
_KO_ROLES = re.compile(r"[생자인원가님객]\Z")
_INDIC = "\u0900-\u0dff"
_SEA = "\u0e00-\u0e7f"
_SPACED = r"(?P<n>{w}{{1,30}}(?: {w}{{1,30}}){{0,2}}?)(?=\s(?:{stop})(?!{w})|[,.;:!?।॥،؛]|\n|\Z)"


# What follows where the name itself is talked about: "my name is wrong", "what is my name".
_NO_NAMES = "गलत|ग़लत|क्या|सही|नहीं|बदल|बदलना|ভুল|কি|خطأ|غلط|کیا|ما|שגוי|לא|מה|неправильно|неверно|как|где|написано|указано|λάθος|τι"


def _spaced(before: str, letters: str, stops: str) -> re.Pattern[str]:
    return re.compile(
        f"(?:{before})[ :]{{1,3}}(?!(?:{stops}|{_NO_NAMES})(?![{letters}]))"
        + _SPACED.format(w=f"[{letters}]", stop=stops)
    )


_ARABIC, _HEBREW, _CYRILLIC, _GREEK = (
    "\u0600-\u060b\u060d-\u061a\u0620-\u06ff",
    "\u0590-\u05ff",
    "\u0400-\u04ff'’ʼ-",
    "\u0370-\u03ff\u1f00-\u1fff",
)
_OTHERS = (
    _spaced("मेरा (?:पूरा )?नाम|मेरो नाम|माझे नाव", "\u0900-\u0963\u0966-\u097f", "है|हैं|हो|आहे|और|मैं|मुझे|पर|लेकिन"),
    _spaced("আমার নাম", "\u0980-\u09ff", "এবং|আমি|কিন্তু|হলো"),
    _spaced("મારું નામ|ਮੇਰਾ ਨਾਮ|ਮੇਰਾ ਨਾਂ", "\u0a00-\u0aff", "છે|અને|ਹੈ|ਅਤੇ"),
    _spaced("என் பெயர்|எனது பெயர்|నా పేరు|ನನ್ನ ಹೆಸರು|എന്റെ പേര്|මගේ නම", "\u0b80-\u0dff", "மற்றும்|என்|నేను|మరియు|ನಾನು|മറ്റും|ആണ്|සහ"),
    _spaced("اسمي|أنا اسمي|اسمى|میرا نام|نام من|اسم من", _ARABIC, "و|ہے|اور|است|هستم|لا|لم|ولا|أريد|میں"),
    _spaced("שמי|קוראים לי|השם שלי הוא|השם שלי", _HEBREW, "ואני|אני|לא|אבל|עם|רוצה"),
    _spaced(
        "[Мм]еня зовут|[Мм]о[её] имя|[Мм]ене звати|[Мм]оє ім'я|[Кк]азвам се|[Зз]овем се|[Мм]оје име је|[Ии]мето ми е",
        _CYRILLIC,
        "и|а|но|не|я|у|в|и не|мне|та|але|що|на|с|i|і",
    ),
    _spaced("[Μμ]ε λένε|[Οο]νομάζομαι|[Τт]ο όνομά μου είναι", _GREEK, "και|δεν|αλλά|από|θέλω|έχω|είμαι"),
    _spaced("მე მქვია|ჩემი სახელია|Իմ անունն է|իմ անունն է|Անունս", "\u0530-\u058f\u10a0-\u10ff", "და|մի|և|ու|ար"),
)
_THAI = re.compile(
    rf"(?:(?:ผม|ฉัน|ดิฉัน|หนู|เรา)ชื่อ|ชื่อของ(?:ผม|ฉัน|ดิฉัน)(?:คือ)?|ชื่อ-?นามสกุล|ຂ້ອຍຊື່)[ :]{{0,2}}(?P<n>[{_SEA}\u0e80-\u0eff]{{2,24}}?(?: [{_SEA}\u0e80-\u0eff]{{2,24}}?)?)(?=ครับ|ค่ะ|คะ|นะ|และ|ไม่|เข้า|อยาก|[,.\s]|\Z)"
)
_LATIN = re.compile(
    r"(?:[Tt]ôi tên là|[Tt]ên (?:của )?tôi là|[Mm]ình tên(?: là)?|[Ee]m tên(?: là)?|[Nn]ama saya|[Nn]ama aku|[Aa]ng pangalan ko ay|[Jj]ina langu ni|[Nn]umele meu este"
    r"|[Mm]ă numesc|[Mm]ă cheamă|[Mm]inu nimi on|[Mm]ani sauc|[Mm]ano vardas|[Vv]olám sa|[Mm]oje ime je|[Zz]ovem se|[Bb]enim adım|[Tt]ên:)\s(?:adalah\s|ialah\s)?"
    r"(?P<n>[^\W\d_]{1,20}(?:[ ][^\W\d_]{1,20}){0,3}?)(?=\s(?:và|không|tôi|muốn|dan|saya|tidak|at|na|și|nu|ja|ei|un|ir|a|i|ve|ne)(?!\w)|[,.;:!?]|\n|\Z)"
)
_ASIAN = re.compile("[\u0370-\uffff]")
_TRIGGERS = (
    "tên",
    "nama s",
    "nama a",
    "pangalan",
    "jina",
    "nume",
    "mă ",
    "nimi on",
    "sauc",
    "vardas",
    "volám",
    "ime je",
    "zovem",
    "adım",
)


def names_in_scripts(facts: Facts) -> Iterator[Span]:
    """Announced names in other scripts, and in languages whose words `announce_patterns` does not hold."""
    text = facts.text
    if _ASIAN.search(text):
        yield from (_span(m) for p in (*_OTHERS, *_JAPANESE, _THAI) for m in p.finditer(text) if m["n"])
        for place, pattern in enumerate(_CHINESE):
            yield from (_span(m) for m in pattern.finditer(text) if place != 2 or not _ROLE_ZH.search(m["n"]))
        for place, pattern in enumerate(_KOREAN):
            yield from (_span(m) for m in pattern.finditer(text) if not place or not _KO_ROLES.search(m["n"]))
    yield from (_span(m) for m in _LATIN.finditer(text))


def _span(match: re.Match[str]) -> Span:
    return Span(match.start("n"), match.end("n"), "PERSON", 0.9, Evidence.ANNOUNCED)


def might_name_in_script(facts: Facts) -> bool:
    """A letter beyond Latin, or one of the Latin triggers; the test is a superset."""
    text = facts.text
    return (not text.isascii() and _ASIAN.search(text) is not None) or holds(facts.folded, _TRIGGERS)
