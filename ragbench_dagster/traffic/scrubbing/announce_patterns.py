"""The words that announce a name, in several languages. All repetitions are bounded."""

from __future__ import annotations

import re

GAP = re.compile(r"[ \t]{1,3}(?=[^\W\d_])|\.[ \t]{0,2}(?=[^\W\d_])")
PARTICLES = frozenset(
    "van von der den de del della di da dos das du la le el al bin binti ibn ben abu ten ter te zu zum af av san st mac mc o d".split()
)

# What follows is a name, unless it is an ordinary word that is no name.
STRONG = re.compile(
    r"(?:\b(?:my|his|her|their|our|the|full|legal|first|last|middle|maiden|family|given|sur|user|nick|account|customer|client|patient"
    r"|contact|holder'?s?|owner'?s?|husband'?s?|wife'?s?|son'?s?|daughter'?s?|boss'?s?|friend'?s?|partner'?s?|kid'?s?|child'?s?|[a-z]{2,15}'s)?"
    r"\s?names?(?:'s|\sis(?:\snow)?|\swas|\sare|\sshould\sbe|\s?:|\s?=)|\bcall\sme|\bthey\scall\sme|\bi\sgo\sby|\b(?:my|his|her|our|their)\snames(?=\s[^\W\d_])|\bname's"
    r"|\bi\sam\scalled|\bi\\?'?m\scalled|\bunder\s(?:the\s)?names?(?:\sof)?|\bin\sthe\snames?\sof|\bnamed|\bsigned(?:\sby)?"
    r"|\bme\sllamo|\bmi\snombre\ses|\bse\sllama|\bje\sm'?\s?appelle|\bmon\snom\sest|\bil\ss'appelle|\belle\ss'appelle|\bich\shei(?:ß|ss)e"
    r"|\bmein\sname\sist|\bmi\schiamo|\bil\smio\snome\s[eè]|\bmeu\snome\s[eé]|\b(?:eu\s)?me\schamo|\bmijn\snaam\sis|\bik\sheet"
    r"|\bjag\sheter|\bmitt\snamn\s[aä]r|\bjeg\shedder|\bjeg\sheter|\bmit\snavn\ser|\bnazywam\ssi[eę]|\bmam\sna\simi[eę]|\bjmenuji\sse"
    r"|\bnimeni\son|\bminun\snimeni\son|\ba\snevem|\bad[ıi]m|\bmenya\szovut)[\s:,\"']{0,4}",
    re.IGNORECASE,
)
# What follows may be a name: it must be listed, or look like one.
WEAK = re.compile(
    r"(?:\b(?:known\sas|i\sam|i\\?'?m|this\sis|it'?s|it\sis|here\sis|ich\sbin|je\ssuis|c'est|yo\ssoy|soy|sono|io\ssono|eu\ssou|sou|ik\sben|jag\s[aä]r|jeg\ser"
    r"|dear|hi|hello|hey|hallo|hola|bonjour|ciao|good\s(?:morning|afternoon|evening)|attn:?|attention:?|from:|to:|cc:|user:|customer:|client:|agent:|patient:|employee:"
    r"|signed:?|contact:?|on\sbehalf\sof|(?:writing|calling|asking|emailing|enquiring|inquiring)\sfor|greetings\sfrom|ask\sfor|speak\s(?:to|with)|talk\sto|met\swith|spoke\s(?:to|with)|follow\sup\swith"
    r"|my\s(?:wife|husband|spouse|partner|son|daughter|kid|child|brother|sister|mother|mom|mum|father|dad|friend|boss|manager|colleague|coworker|doctor"
    r"|girlfriend|boyfriend|fianc[eé]e?|assistant|landlord|tenant|teacher|uncle|aunt|cousin|niece|nephew|grandmother|grandfather|supervisor|lawyer|neighbou?r)(?:\sis|,)?"
    r"))[\s:,\"']{1,3}",
    re.IGNORECASE,
)
SIGNED = re.compile(
    r"(?:\b(?:(?:kind|best|warm|many|with)\s)?regards|\bsincerely(?:\syours)?|\byours\s(?:truly|sincerely|faithfully)|\bcheers|\bthanks(?:\sa\slot|\sin\sadvance|\sso\smuch|\sagain)?"
    r"|\bthank\syou(?:\svery\smuch|\sin\sadvance|\sso\smuch)?|\bthx|\brespectfully|\bbest(?:\swishes)?|\bsaludos|\bcordialement|\bmfg|\bgr(?:ü|ue)(?:ß|ss)e?n?|\bgroeten|\bhilsen|\bcordiali\ssaluti)"
    r"\s{0,2}[,.!:;–-]*\s{1,3}",
    re.IGNORECASE,
)
# What may stand after the name of one who signs: nothing, or where to reach them.
AFTER_SIGNED = re.compile(
    r"[\s.,!]*(?:\n|\Z|[^\w\s]|\d|(?:tel|phone|mobile|cell|e-?mail|mail|fax|from|at|call|contact)\b)", re.IGNORECASE
)
TITLE = re.compile(
    r"\b(?P<t>mr|mrs|ms|miss|mister|dr|prof|professor|doctor|sir|madam|mme|mlle|monsieur|madame|m\.|herr|frau|se[nñ]ora?|sr|sra|signora?|sig|dhr|mevr|pan[ií]?|fru|rev|reverend|capt|captain|sgt|lt)\b\.?\s{1,2}",
    re.IGNORECASE,
)
KIN = re.compile(r"my\s", re.IGNORECASE)
# One who speaks in a transcript: `luis: "..."` at the beginning of a line.
SPEAKER = re.compile(
    r"(?:^|(?<=[\n>]))[ \t]{0,3}(?P<n>[^\W\d_]{2,30}(?:[ \t][^\W\d_]{1,30}){0,2})[ \t]?:(?=[ \t]*[\\\"“'‘A-Z])",
    re.MULTILINE,
)
QUOTED = re.compile(r"[ \t]*\\?[\"“'‘]")
# Alone on its line above an address: `> Esat Jeknić`.
HEAD = re.compile(
    r"^[ \t>?*•-]{0,8}(?P<n>[^\W\d_]{2,30}(?:[ \t]+(?:[^\W\d_]\.?|[^\W\d_][^\W\d_'’.-]{1,30})){1,3})[ \t]*$",
    re.MULTILINE,
)
ADDRESSED = re.compile(r"(?i)\b(?:apt|suite|box|unit|phone|mobile|e-?mail|address|fax)\b|\d{4,}")
FIRM_WORD = re.compile(
    r"(?i)\b(?:inc|ltd|llc|corp|group|partners|associates|agency|systems|solutions|software|research|services|consulting|technologies"
    r"|insurance|international|foundation|bank|club|data|media|labs?|network|institute|company|co)\b"
)
TRIGGERS = (
    "name", "call", "go", "named", "signed", "llam", "nombre", "appelle", "nom", "hei", "chia", "nome", "cham", "naam", "heet", "heter", "namn",
    "hedder", "navn", "nazywam", "imi", "jmenuji", "nimeni", "nevem", "adim", "zovut", "known",
)  # fmt: skip

# What follows a lone unlisted name after "my wife" or "i'm".
AFTER = frozenset(
    "is was has had can cannot can't could did does will would wants needs and who said told asked tried to from here speaking".split()
)
ADJECTIVE = re.compile(r"(?:ed|ing|ly|able|ible|ful|less|ous|ive|ish|ated|tion|ment|ness|ist|er|ers|ent|ant|ic|al)$")
ANY = re.compile(
    "|".join(p.pattern for p in (WEAK, SIGNED)).replace("?P<t>", "?:") + "|" + TITLE.pattern, re.IGNORECASE
)
