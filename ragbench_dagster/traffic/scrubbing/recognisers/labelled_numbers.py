"""Numbers behind the words for them: accounts, devices, vehicles, customers, patients, passports, licences, national ids.

The word says what the number is, in any spelling (`account_number=`, `acct:`, Kontonummer) and before or after it;
short words that also mean other things (RFC, SIN, PAN) need the check digit of `python-stdnum` too. A number of a
product, an order or a ticket is nobody's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from ragbench_dagster.traffic.scrubbing.normalise import UNSPACED
from ragbench_dagster.traffic.scrubbing.prefilter import Facts
from ragbench_dagster.traffic.scrubbing.spans import Evidence, Span

_NO = r"(?:[\s_.-]{0,2}(?:numbers?|num|no|nr|id|nummer|code|#)(?![^\W_]))"
_S = r"[\s_.-]?"
# type -> (fewest digits, the words). A space stands for any or no separator.
_LABELS: dict[str, tuple[int, str]] = {
    "ACCOUNT_NUMBER": (5, (
        r"(?:bank|checking|savings?|current|giro|debit|deposit|my|the|your|his|her)? ?(?:account|acct|a/c){no}?|acc(?:t|ount)?{no}|acc no|iban no|sort ?code|routing{no}|aba{no}|bsb"
        r"|kontonummer|konto nr|konto|kontonr|blz|bankleitzahl|num[eé]ro de compte|compte bancaire|num[eé]ro de cuenta|n[uú]mero de cuenta"
        r"|cuenta bancaria|clabe|cbu|numero di conto|conto corrente|conta banc[aá]ria|n[uú]mero da conta|rekeningnummer|rekening nr|bankgiro|plusgiro"
        r"|numer konta|nr konta|[cč][ií]slo [uú][cč]tu|sz[aá]mlasz[aá]m|hesap no|hesap numaras[iı]|номер сч[её]та|口座番号|银行账号|银行帐号|账号|帐号|账户|계좌번호"
        r"|เลขที่บัญชี|เลขบัญชี|खाता संख्या|số tài khoản|رقم الحساب|מספר חשבון"
    )),
    "CUSTOMER_NUMBER": (4, (
        r"(?:customer|client|member|membership|subscriber|policy|insurance|insured|loyalty|employee|staff|personnel|payroll|student|cardholder|taxpayer|beneficiary|frequent flyer|user){no}"
        r"|kundennummer|kunden nr|kunden id|mitgliedsnummer|versicherungsnummer|versichertennummer|personalnummer|matrikelnummer|policennummer"
        r"|num[eé]ro (?:de )?client|num[eé]ro d'adh[eé]rent|num[eé]ro d'assur[eé]|n[uú]mero de cliente|n[uú]mero de socio|n[uú]mero de p[oó]liza|codice cliente|numero cliente"
        r"|numero tessera|klantnummer|polisnummer|lidnummer|kundnummer|kundenummer|medlemsnummer|asiakasnumero|numer klienta|[cč][ií]slo z[aá]kazn[ií]ka"
        r"|номер клиента|客户号|客户编号|会员号|顧客番号|会員番号|社員番号|学籍番号|고객번호|회원번호|사번|학번"
    )),
    "PATIENT_NUMBER": (4, (
        r"(?:patient|medical record|hospital|health card|health insurance|chart){no}|mrn{no}?|medicare{no}?|medicaid{no}?|patientennummer|krankenversicherungsnummer|kvnr"
        r"|num[eé]ro (?:de )?patient|n[uú]mero de paciente|n[uú]mero de historia|codice paziente|pati[eë]ntnummer|患者番号|病历号|就诊号|환자번호"
    )),
    "DEVICE_ID": (14, r"imei(?:sv)?{no}?|imsi{no}?|iccid{no}?|meid{no}?|sim(?: card)?{no}|device imei"),
    "VEHICLE_ID": (1, (
        r"vin{no}?|vehicle identification{no}?|chassis{no}|fahrgestellnummer|fin{no}|num[eé]ro de ch[aâ]ssis|n[uú]mero de bastidor|bastidor|numero di telaio|telaio|chassisnummer"
        r"|车架号|車台番号|차대번호"
    )),
    "PASSPORT_NUMBER": (5, (
        r"passport{no}?|reisepass ?(?:nummer|nr)?|passnummer|pass nr|num[eé]ro de passeport|passeport|pasaporte|passaporto|passaporte|paspoort(?:nummer)?|passi(?:n)? ?numero|numer paszportu|paszport"
        r"|[uú]tlev[eé]lsz[aá]m|pasaport|паспорт\w{0,2}|护照|護照|旅券|パスポート|여권|หนังสือเดินทาง|hộ chiếu|جواز السفر|דרכון"
    )),
    "LICENSE_NUMBER": (5, (
        r"driv(?:er'?s?|ers|ing) ?licen[cs]e{no}?|licen[cs]e{no}|dl{no}|f[uü]hrerschein ?(?:nummer|nr)?|permis(?: de conduire)?|permiso de conducir|carnet de conducir|licencia de conducir"
        r"|patente(?: di guida)?|carta de condu[cç][aã]o|cnh|rijbewijs(?:nummer)?|k[oö]rkort(?:snummer)?|k[oø]rekort(?:nummer)?|f[oø]rerkort(?:nummer)?|ajokortti|prawo jazdy|водительск\w{2,3}(?: удостоверени\w)?"
        r"|驾驶证号?|驾照号?|運転免許証?|免許証|운전면허"
    )),
    "NATIONAL_ID": (6, (
        r"national (?:identity|id|identification|insurance){no}?|nin{no}|nino|identity (?:card|document){no}?|id card{no}?|identification{no}|citizen{no}|(?:government|state) id{no}?|voter id{no}?|personal (?:id|identity|identification){no}"
        r"|personalausweis ?(?:nummer|nr)?|ausweisnummer|ausweis nr|steuer id{no}?|steueridentifikationsnummer|steuernummer|sozialversicherungsnummer|sv nummer|ahv(?: ?nummer| nr)?"
        r"|carte d'identit[eé]|num[eé]ro de s[eé]curit[eé] sociale|n[uú]mero de (?:identidad|identificaci[oó]n)|dni{no}?|c[eé]dula(?: de identidad| de ciudadan[ií]a)?|curp|cuil|cuit|rut|cpf|cnpj"
        r"|codice fiscale|carta d'identit[aà]|burgerservicenummer|bsn|rijksregisternummer|personnummer|personnr|f[oø]dselsnummer|cpr(?: ?nummer| nr)|henkil[oö]tunnus|hetu|pesel|rodn[eé] [cč][ií]slo"
        r"|szem[eé]lyi sz[aá]m|taj sz[aá]m|cnp|егн|egn|oib|jmbg|em[sš]o|t\.?c\.? kimlik(?: no| numaras[iı])?|amka|αμκα|αφμ|инн|снилс|aadhaa?r{no}?|pan card{no}?|nhs{no}?|pps{no}|ppsn|nric|my ?kad|ktp|cccd|cmnd"
        r"|身份证号?码?|身份證字?號?碼?|居民身份证|マイナンバー|個人番号|주민등록번호|외국인등록번호|เลขประจำตัวประชาชน|เลขบัตรประชาชน|आधार(?: संख्या| नंबर)?|תעודת זהות|ת\.ז\.|رقم الهوية|الرقم القومي|căn cước"
    )),
}  # fmt: skip
# Short words in capitals that also mean other things: the check digit must hold.
_CHECKED = {
    "SIN": ("ca.sin",), "TFN": ("au.tfn",), "NIE": ("es.nie",), "NIF": ("es.nif", "pt.nif"), "RFC": ("mx.rfc",), "NIR": ("fr.nir",), "PAN": ("in_.pan",),
    "CPR": ("dk.cpr",), "PPS": ("ie.pps",), "IRD": ("nz.ird",), "UTR": ("gb.utr",), "RUN": ("cl.rut",), "CF": ("it.codicefiscale",), "CI": ("ec.ci",),
    "NPWP": ("id.npwp",), "TIN": ("us.tin",), "CN": ("ro.cnp",), "HKID": (), "IK": ("ee.ik",),
}  # fmt: skip
_TIE = r"\.?[\"'`\\]{0,4}\]?(?:\s{0,3}(?:[:=#>()]|%3[ad]|(?:is|was|are|ist|lautet|est|es|è|é|er|är|no|nr|num|number|nummer|n°|nº|№|id|ends? in)(?![^\W_])\.?|是|为|為|号码|号|番号|は|은|는|이|คือ|है)){0,4}\s{0,3}[\"'`\\]{0,4}"
_NUMBER = r"(?:[A-Za-z]{1,6}(?=\d)|(?-i:[A-Z]{1,3})[ -])?\d[0-9A-Za-z]*(?:[ ./-]{1,2}[0-9A-Za-z]*\d[0-9A-Za-z]*){0,7}"
_EDGE = rf"(?<![^\W_{UNSPACED}])"


def _words(words: str) -> str:
    return words.replace("{no}", _NO).replace(" ?", "\x00").replace(" ", _S).replace("\x00", _S)


_BEFORE = {
    type_: re.compile(rf"{_EDGE}(?:{_words(words)}){_TIE}(?P<v>{_NUMBER})(?![A-Za-z0-9])", re.IGNORECASE)
    for type_, (_, words) in _LABELS.items()
}
_AFTER = {
    type_: re.compile(
        rf"(?<![A-Za-z0-9./-])(?P<v>{_NUMBER})\s?(?:[(,–-]\s?|(?:is|was|as|ist|est|es)\s(?:my|the|his|her|our|their|your|mein\w{{0,2}}|mon|ma|mi|il mio)\s)(?:{_words(words)})(?![^\W_])",
        re.IGNORECASE,
    )
    for type_, (_, words) in _LABELS.items()
}
_ACRONYM = re.compile(rf"{_EDGE}(?P<a>{'|'.join(_CHECKED)}){_TIE}(?P<v>{_NUMBER})(?![A-Za-z0-9])")
_PLATE = re.compile(
    rf"{_EDGE}(?i:licen[cs]e{_S}plate|number{_S}plate|(?:vehicle|car){_S}registration|reg(?:istration)?{_S}plate|kfz-?kennzeichen|kennzeichen|plaque{_S}d'immatriculation|immatriculation"
    rf"|matr[ií]cula|targa|kenteken|車のナンバー|车牌号?码?){_NO}?(?i:{_TIE})(?P<v>[A-ZÄÖÜ京-龥][A-ZÄÖÜ0-9]{{0,3}}[ ·-]?[A-Z0-9]{{1,4}}[ -]?[A-Z0-9]{{0,5}})(?![A-Za-z0-9])"
)
_GROUPS = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|(?:19|20)\d{2}[./-]\d{1,2}[./-]\d{1,2}|(?:19|20)\d{2}|\d{1,3}(?:[.,]\d{3})+"
)


def labelled_numbers(facts: Facts) -> Iterator[Span]:
    """Numbers behind, or before, the words for them."""
    text, folded = facts.text, facts.folded
    stretches = facts.around_numbers(_WIDTH, _WIDTH, 4) if facts.skip else [(0, len(text))]
    wanted = [type_ for type_, stems in _STEMS_OF.items() if stretches and (not facts.skip or stems.search(folded))]
    for begin, end in stretches:
        for type_ in wanted:
            for pattern in (_BEFORE[type_], _AFTER[type_]):
                for match in pattern.finditer(text, begin, end):
                    if _fits(type_, match["v"], match[0]):
                        yield Span(match.start("v"), match.end("v"), type_, evidence=Evidence.ANNOUNCED)
        for match in _ACRONYM.finditer(text, begin, end):
            if any(import_module(f"stdnum.{name}").is_valid(match["v"]) for name in _CHECKED[match["a"]]):
                yield Span(match.start("v"), match.end("v"), "NATIONAL_ID", evidence=Evidence.ANNOUNCED)
    if facts.holds(_PLATE_STEMS):
        for match in _PLATE.finditer(text):
            if any(ch.isdigit() for ch in match["v"]):
                yield Span(match.start("v"), match.end("v"), "VEHICLE_ID", evidence=Evidence.ANNOUNCED)


def _fits(type_: str, value: str, whole: str) -> bool:
    """Enough digits, no date, year or amount; a VIN has its 17 signs."""
    core = re.sub(r"[^0-9A-Za-z]", "", value)
    if type_ == "VEHICLE_ID":
        return re.fullmatch(r"[A-HJ-NPR-Za-hj-npr-z0-9]{17}", core) is not None
    digits = sum(ch.isdigit() for ch in core)
    if type_ == "DEVICE_ID":
        return 14 <= digits <= 22 and core.isdigit()
    return (
        digits >= _LABELS[type_][0]
        and 2 * digits >= len(core) - 6
        and (not _GROUPS.fullmatch(value) or whole[:4].lower() == "sort")
    )


# Pieces of the words, folded: none of them in a text, and the pattern cannot match.
_STEMS = {
    "ACCOUNT_NUMBER": tuple("acc a/c sort routing aba bsb kont blz bankleit compte cuenta clabe cbu conto conta rekening giro účt uct ucet számla szamla hesap сче счё 口座 账 帐 계좌 บัญชี खाता tài خ حساب חשבון iban".split()),
    "CUSTOMER_NUMBER": tuple("customer client member subscriber policy insur loyal employee staff personnel payroll student cardholder taxpayer beneficiary frequent user kund mitglied versicher personal matrikel police adh assur cliente socio póliza poliza tessera klant polis lidnummer medlem asiakas klient zákazn zakazn клиент 客 会员 顧客 会員 社員 学籍 고객 회원 사번 학번".split()),
    "PATIENT_NUMBER": tuple("patient medical hospital health chart mrn medic kranken kvnr pacient historia pazient patiënt 患者 病历 就诊 환자".split()),
    "DEVICE_ID": ("imei", "imsi", "iccid", "meid", "sim"),
    "VEHICLE_ID": tuple("vin vehicle chass châss fahrgestell fin bastidor telaio 车架 車台 차대".split()),
    "PASSPORT_NUMBER": tuple("passp pasap pasport reisepass passnummer pass passi passe paspoort paszport útlev utlev паспорт 护照 護照 旅券 パスポート 여권 หนังสือ chiếu جواز דרכון".split()),
    "LICENSE_NUMBER": tuple("licen dl führer fuhrer permis carnet patente carta cnh rijbewijs körkort korkort kørekort korekort førerkort forerkort ajokortti prawo водительск 驾 免許 운전".split()),
    "NATIONAL_ID": tuple(
        "national nin identi id citizen voter ausweis steuer sozial sv ahv carte sécu secu dni cédula cedula curp cuil cuit rut cpf cnpj fiscale carta burger bsn rijks person fødsel fodsel cpr henkil hetu"
        " pesel rodn szem taj cnp егн egn oib jmbg emšo emso kimlik amka αμκα αφμ инн снилс aadha pan nhs pps nric kad ktp cccd cmnd 身份 身份證 マイナンバー 個人番号 주민 외국인 เลข आधार זהות ת.ז הוית الهوية القومي căn".split()
    ),
}  # fmt: skip
_STEMS_OF = {type_: re.compile("|".join(re.escape(s.casefold()) for s in stems)) for type_, stems in _STEMS.items()}
_PLATE_STEMS = ("plate", "regist", "kennz", "plaque", "immat", "matr", "targa", "kenteken", "ナンバー", "车牌")
_WIDTH = 160  # characters around a number in which the words for it stand
TYPES = tuple(_LABELS)


def might_labelled(facts: Facts) -> bool:
    """Every value has a digit, and most have many."""
    return facts.digits >= 2
