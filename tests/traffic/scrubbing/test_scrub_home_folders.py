"""Border of the kind: the folder right below the homes of a system is an account's name, unless it is nobody's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber

PATHS = [  # {} is the account
    r"C:\Users\{}\Documents\plan.txt", r"D:\users\{}", "C:/Users/{}/AppData/Local/app.log", r"C:\\Users\\{}\\Desktop",
    r"C:\\\\Users\\\\{}\\\\x.json", r"C:\Documents and Settings\{}\Local Settings", r"C:\Benutzer\{}\Dokumente",
    r"C:\Utilisateurs\{}\Bureau", r"C:\Usuarios\{}\Escritorio", "/home/{}/.ssh/config", "/home/{}", "/Users/{}/Library/Logs/app.log",
    "/mnt/c/Users/{}/proj", "/cygdrive/c/Users/{}/proj", "/c/Users/{}/proj", r"\\wsl$\Ubuntu\home\{}\proj", r"\\wsl.localhost\Debian\home\{}\x",
    r"\\files01\Users\{}\report.docx", r"\\files01\home$\{}\report.docx", r"\\corp.example\profiles$\{}\desktop", r"\\?\C:\Users\{}\x",
    "file:///home/{}/a.html", "file:///C:/Users/{}/a.html", "file:///Users/{}/a.html", "C%3A%5CUsers%5C{}%5Cdoc", "%2Fhome%2F{}%2Fdoc",
    "/export/home/{}/src", "/usr/home/{}/src", "/var/mail/{}", "/var/spool/mail/{}", "/run/media/{}/STICK", "/media/{}/STICK/a",
    "/Volumes/Macintosh HD/Users/{}/x", "host.example:/home/{}/x", "~{}/public/x", "-Users-{}-proj-x",
]  # fmt: skip
ACCOUNTS = ["janeroe", "jroe42", "quuxina"]
NOBODY = [
    "Public",
    "runner",
    "root",
    "app",
    "ubuntu",
    "Shared",
    "Default",
    "node",
    "vagrant",
    "ec2-user",
    "jovyan",
    "username",
    "www-data",
]


@pytest.fixture(scope="module", params=["off", "auto"])
def scrubber(request) -> Scrubber:
    return build_scrubber(Scrub(ner=request.param))


@pytest.mark.parametrize("path", PATHS)
def test_the_account_goes_and_the_path_stays_in_every_spelling(scrubber, path):
    for account in ACCOUNTS:
        for around in ("open {} fails", 'error in "{}" again', "({})", "{}"):
            text = around.format(path.format(account))
            assert scrubber.texts([text])[0].text == around.format(path.format("<PERSON_1>"))


@pytest.mark.parametrize("path", PATHS)
def test_folders_of_nobody_stay(scrubber, path):
    if path.startswith(("~", "-", "/var/", "/media", "/run")):
        return  # no such folders there
    for account in NOBODY:
        text = f"open {path.format(account)} fails"
        assert scrubber.texts([text])[0].text == text


@pytest.mark.parametrize(
    ("text", "done"),
    [
        (r"C:\Users\Jane Roe\Documents\a.txt", r"C:\Users\<PERSON_1>\Documents\a.txt"),
        (r"C:\Users\jane.roe.CORP\a", r"C:\Users\<PERSON_1>\a"),
        ("file:///C:/Users/Jane%20Roe/Desktop/x.html", "file:///C:/Users/<PERSON_1>/Desktop/x.html"),
        ("/home/jöns/x", "/home/<PERSON_1>/x"),
        ("/Users/jane.roe is full", "/Users/<PERSON_1> is full"),
        ("copy /home/janeroe to /mnt/backup", "copy /home/<PERSON_1> to /mnt/backup"),
        ("文件/home/janeroe/a.txt找不到", "文件/home/<PERSON_1>/a.txt找不到"),
        (r"C:\Users\janeroe and D:\data", r"C:\Users\<PERSON_1> and D:\data"),
        ("ls /home/janeroe, /home/karlp", "ls /home/<PERSON_1>, /home/<PERSON_2>"),
    ],
)
def test_names_with_spaces_dots_and_other_letters_go_whole(scrubber, text, done):
    assert scrubber.texts([text])[0].text == done


@pytest.mark.parametrize(
    "text",
    [
        "the route /home/dashboard is 404", "GET /users/list returns 500", "example.com/home/pricing", "docs/home/index", "/home/index.html",
        "/Users/ is missing", "/home is full", "cd ~/projects", "C:\\Users\\%USERNAME%\\x", "/home/$USER/x", "/Users/<name>/x", "/home/{user}/x",
        "app/users/views.py", "src/home/banner.tsx", "./home/page", "C:\\Program Files\\App", "/var/log/app.log", "/media/cdrom/x",
        "the home/work switch", "users/permissions", "the -home- page", "/mnt/c/Windows", "s3://bucket/home/data", "~=1.2", "a ~ b/c",
        "Traceback: what does it mean", "Hostname: db1", "Stacktrace: see below", "Prerequisites: Docker", "Kubernetes: pods pending",
    ],
)  # fmt: skip
def test_other_paths_routes_and_variables_stay(scrubber, text):
    assert scrubber.texts([text])[0].text == text


@settings(max_examples=100, deadline=None)
@given(
    account=st.from_regex(r"[a-z]{2,4}[qxz][a-z]{2,5}[0-9]{0,2}", fullmatch=True),
    path=st.sampled_from([p for p in PATHS if not p.startswith(("~", "-"))]),
)
def test_any_account_goes(account, path):
    made = build_scrubber(Scrub(ner="off"))
    shown = made.texts([path.format(account)])[0].text
    assert shown == path.format("<PERSON_1>") or made._lexicon.flags(account)  # a word of a list stays
