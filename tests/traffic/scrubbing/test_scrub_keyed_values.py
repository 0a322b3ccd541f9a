"""Border of the kind: a key that says "a person's name" or "a date of birth" announces its value, however it is written."""

import json

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber

NAME_KEYS = [
    "lastName", "last_name", "last-name", "LASTNAME", "LastName", "surname", "family_name", "familyName", "given_name", "firstName", "fname",
    "lname", "middleName", "maiden_name", "fullName", "full_name", "cardholderName", "billingLastName", "customer.first_name", "contact_name",
    "Nachname", "vorname", "prenom", "nom_de_famille", "apellidos", "primerApellido", "cognome", "sobrenome", "achternaam", "efternavn",
    "etternavn", "nazwisko", "příjmení", "vezeteknev", "soyadi", "фамилия", "姓名", "氏名", "이름", "customerName", "account_holder_name",
]  # fmt: skip
BIRTH_KEYS = [
    "dob", "DOB", "dateOfBirth", "date_of_birth", "date-of-birth", "birthDate", "birth_date", "birthday", "BirthDay", "bday", "Geburtsdatum",
    "dateDeNaissance", "date_naissance", "fechaNacimiento", "fecha_de_nacimiento", "dataDiNascita", "dataNascimento", "geboortedatum",
    "fødselsdato", "data_urodzenia", "datumNarozeni", "dogumTarihi", "生年月日", "出生日期", "생년월일", "patientDob", "user_birth_date", "tanggalLahir",
    "ngay_sinh", "syntymäaika",
]  # fmt: skip
DATES = ["1984-05-17", "17/05/1984", "17.05.1984", "19840517", "May 17, 1984", "1984-05-17T00:00:00Z"]


def _wrappings(key: str, value: str) -> list[str]:
    body = json.dumps({key: value, "plan": "pro"}, ensure_ascii=False)
    return [
        f"why is {body} refused", f"why is {json.dumps(body, ensure_ascii=False)} refused", f"row: {key}={value}; plan=pro",
        f"<{key}>{value}</{key}><plan>pro</plan>", f"&lt;{key}&gt;{value}&lt;/{key}&gt; plan pro", f"the {key}: {value}\nplan: pro",
        f"'{key}' => '{value}', 'plan' => 'pro'", f"{key} = \"{value}\" plan = pro",
    ]  # fmt: skip


@pytest.fixture(scope="module", params=["off", "auto"])
def scrubber(request) -> Scrubber:
    return build_scrubber(Scrub(ner=request.param))


@pytest.mark.parametrize("key", NAME_KEYS)
def test_a_name_under_its_key_goes_and_the_rest_of_the_payload_stays(scrubber, key):
    for value in ("Roe", "Quuxwood", "Van Testwood", "borgildha"):
        for text in _wrappings(key, value):
            done = scrubber.texts([text])[0]
            assert value.split()[-1] not in done.text, text
            assert "pro" in done.text, text
            assert key in done.text, text


@pytest.mark.parametrize("key", BIRTH_KEYS)
def test_a_date_of_birth_under_its_key_goes(scrubber, key):
    for value in DATES:
        for text in _wrappings(key, value):
            done = scrubber.texts([text])[0]
            assert value[:10] not in done.text, text
            assert [s.type for s in done.spans] == ["DATE_OF_BIRTH"], text


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "E42", "retry": 3, "released": "2026-05-17"}', '{"name": "web-server", "image": "nginx"}', '{"name": "checkout"}',
        '{"lastName": null, "firstName": ""}', '{"lastName": "required"}', '{"lastName": "cannot be blank"}', "last_name: string",
        "lastName: varchar(50)", "first_name=%s&last_name=%s", "{{last_name}} is empty", "surname: optional", "the surname: wrong order",
        "<lastName/> is missing", "<name>checkout-service</name>", "filename=report.pdf", "hostname: db1", "table_name = orders",
        '{"created": "2026-05-17", "updated_at": "2026-05-18"}', "date=1984-05-17", '{"eventDate": "17/05/1984"}', "class_name: header",
        "username: your_username", '{"dob": null}', "dob: required, format YYYY-MM-DD", "birthday discount is 10 %", "name=value pairs",
        "SELECT last_name FROM users", "sort by lastName", "is date_of_birth required", "project_name: atlas", "displayName is not unique",
        "rename: true", "nominal=5", "expiryDate: 2031-05-17", "<birthDate> is not a valid tag",
    ],
)  # fmt: skip
def test_keys_of_things_types_and_missing_values_stay(scrubber, text):
    assert scrubber.texts([text])[0].text == text
