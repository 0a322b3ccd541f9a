"""Border of the kind: the words that announce a name leave no doubt in any script, and the name goes whole."""

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubber, build_scrubber


@pytest.fixture(scope="module", params=["off", "auto"])
def scrubber(request) -> Scrubber:
    return build_scrubber(Scrub(ner=request.param))


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("我叫", "李小龙", "，无法登录"), ("我叫", "陈晓明", "无法登录"), ("我是", "李雷", "，想问一下"), ("姓名：", "欧阳娜娜", "，电话不通"), ("我的名字是", "赵敏", "。"),
        ("私の名前は", "鈴木一郎", "です。ログインできません"), ("", "田中花子", "と申します。"), ("名前は", "佐藤ゆい", "です"), ("제 이름은 ", "이수진", "입니다"),
        ("저는 ", "박지훈", "입니다"), ("성함은 ", "최민호", "입니다"), ("मेरा नाम ", "सुनीता वर्मा", " है"), ("আমার নাম ", "রহিম উদ্দিন", "।"), ("اسمي ", "محمد علي", " ولا أستطيع الدخول"),
        ("שמי ", "דוד לוי", " ואני לא נכנס"), ("меня зовут ", "ольга смирнова", ", не могу войти"), ("Меня зовут ", "Пётр Иванов", " и не могу войти"), ("мене звати ", "Олена Коваль", ", допоможіть"),
        ("με λένε ", "Γιώργος Παπαδόπουλος", " και δεν μπορώ"), ("ผมชื่อ", "สมชาย ใจดี", " ครับ"), ("tôi tên là ", "Lê Thị Hoa", " và không vào được"),
        ("mă numesc ", "Ion Popescu", " și nu pot"), ("my name is ", "Trần Quốc An", " and I cannot log in"), ("my name is ", "María del Carmen García López", ", hi"),
        ("my name is ", "Jan van der Berg", " and I wait"), ("my name is ", "Ana Paula Souza Lima", "."), ("me llamo ", "José Luis Pérez Soto", " y no puedo entrar"),
        ("என் பெயர் ", "குமார்", "."), ("میرا نام ", "احمد خان", " ہے"), ("minu nimi on ", "Mari Tamm", " ja ma ei saa"),
    ],
)  # fmt: skip
def test_the_name_goes_whole_and_the_sentence_stays(scrubber, before, name, after):
    done = scrubber.texts([before + name + after])[0]
    assert done.text == f"{before}<PERSON_1>{after}"


@pytest.mark.parametrize(
    "text",
    [
        "我是新用户，无法登录", "我是黄金会员，想问", "我是高中生。", "名前は何ですか", "名前は必須です", "名前は変更できますか", "저는 학생입니다", "저는 이용자입니다", "이름은 무엇입니까",
        "मेरा नाम गलत है", "मेरा नाम क्या है", "моё имя не отображается", "меня зовут?", "ชื่อผิด", "学生です", "アカウント名は表示されません", "我是谁", "姓名是必填项吗",
        "nama file saya", "tên đăng nhập", "My Name Is Wrong And I Wait", "我想叫外卖", "什么叫人工智能", "私はとても困っています", "אני לא מצליח", "أنا لا أستطيع",
        "με βοηθάτε", "как меня найти", "저는 로그인이 안 됩니다", "मैं परेशान हूँ",
    ],
)  # fmt: skip
def test_sentences_that_announce_nobody_stay(scrubber, text):
    assert scrubber.texts([text])[0].text == text
