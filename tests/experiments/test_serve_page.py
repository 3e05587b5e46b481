"""The web page in a real browser: type, ask, read the answer, for each kind of head."""

import contextlib
import re
import shutil
import subprocess
import threading

import pytest
import tiny
from tiny_served import Unsaved
from werkzeug.serving import make_server

import official_bert as ob
from experiments.serve import PAGE
from experiments.serving.rest import create_app
from official_bert.checkpoints.model_folder import LoadedModel, describe

VOCAB = [*tiny.SPECIAL, *"<>/.!?", "the", "cat", "sat", "on", "a", "mat", "who", "b", "i"]
HEADS = {
    "classification": lambda encoder: ob.BertClassifier(encoder, 2, seed=1),
    "span": lambda encoder: ob.BertSpan(encoder, seed=1),
    "tagging": lambda encoder: ob.BertTagger(encoder, 3, seed=4),
    "masked_words": lambda encoder: ob.BertPretrainer(encoder, seed=1),
    "multiple_choice": lambda encoder: ob.BertMultipleChoice(encoder, seed=1),
}
PATIENCE = 900  # seconds; beside other work a page takes its time
LABELS = {"classification": ["bad", "good"], "tagging": ["O", "B-PER", "I-PER"]}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium (extra dev)")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    chromium = chromium or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs Chromium and chromedriver on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    flags = "headless no-sandbox disable-gpu disable-dev-shm-usage disable-background-networking "
    flags += f"no-first-run window-size=800,700 user-data-dir={tmp_path_factory.mktemp('browser')}"
    for flag in flags.split():
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})

    class Service(webdriver.ChromeService):
        def start(self):
            """At a port that chromedriver picks; of one that was free another may have got hold."""
            self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
            told = (
                re.search(r"started successfully on port (\d+)", x) for x in self.process.stdout
            )
            self.port = int(next(filter(None, told))[1])

    service = Service(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as started:
        yield started


@contextlib.contextmanager
def serving(head):
    """Serve a small model with that head; yields the address and the model."""
    encoder = tiny.encoder(VOCAB)
    model = HEADS[head](encoder)
    kind, own = describe(model)
    settings = {"labels": LABELS.get(head, []), "max_seq_length": 32, **own}
    loaded = LoadedModel(encoder.config, encoder, model, kind, ob.BertTokenizer(VOCAB), settings)
    served = Unsaved(loaded, max_query_length=8)
    app = create_app(served, head, PAGE.read_text(encoding="utf-8"), loaded, hosts=["127.0.0.1"])
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/", served
    finally:
        server.shutdown()
        thread.join()


def ask(browser, address, **texts):
    """Load the page, types the texts, asks; return the answer's text."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(address)
    wait = WebDriverWait(browser, PATIENCE)
    button = wait.until(lambda b: b.find_elements(By.TAG_NAME, "button"))[0]
    for name, text in texts.items():
        area = browser.find_element(By.ID, name)
        if text.isascii():
            area.clear()
            area.send_keys(text)
        else:  # chromedriver cannot type characters beyond U+FFFF
            browser.execute_script("arguments[0].value = arguments[1]", area, text)
    button.click()
    wait.until(
        lambda b: b.find_element(By.ID, "answer").text or b.find_element(By.ID, "error").text
    )
    assert browser.find_element(By.ID, "error").text == ""
    return browser.find_element(By.ID, "answer").text


def marks(browser):
    from selenium.webdriver.common.by import By

    return [mark.text for mark in browser.find_elements(By.TAG_NAME, "mark")]


def bars(browser):
    return browser.find_elements("css selector", ".track span")


FEW = ("classification", "span")


@pytest.mark.parametrize(
    "head", [*FEW, *(pytest.param(h, marks=pytest.mark.slow) for h in HEADS if h not in FEW)]
)
def test_the_page_shows_the_answer(browser, head):
    texts = {"text": "the cat sat on a <b>mat</b>"}
    if head == "span":
        texts = {"question": "who sat?", "context": "😀 the cat sat on a mat"}
    elif head == "multiple_choice":
        texts = {"context": "the cat", "choices": "sat on a mat\nwho?\n"}
    elif head == "masked_words":
        texts = {"text": "the [MASK] sat on a [MASK]."}
    with serving(head) as (address, served):
        answer = ask(browser, address, **texts)
        assert browser.title == head
        lists = {name: [text] for name, text in texts.items()}
        if head == "multiple_choice":
            lists["choices"] = [["sat on a mat", "who?"]]
        expected = served(**lists)
        if head == "classification":
            share = max(expected["probabilities"][0])
            assert answer.splitlines()[0].startswith(expected["labels"][0])
            assert f"{100 * share:.1f} %" in answer
            best, worst = (bar.size["width"] for bar in bars(browser))
            assert worst / best == pytest.approx((1 - share) / share, abs=0.05)
        elif head == "span":
            assert marks(browser) == expected["answer"]
        elif head == "tagging":
            assert "<b>mat</b>" in "".join(answer.split("PER")).replace("\n", "")
            found = [label for label in expected["labels"][0] if label not in ("", "O")]
            assert found and all(mark.endswith("PER") for mark in marks(browser))
        elif head == "masked_words":
            first, second = (words[0] for words in expected["words"][0])
            assert answer.startswith(f"the {first} sat on a {second}.")
        else:
            best = ["sat on a mat", "who?"][expected["choice"][0]]
            assert answer.startswith(best)
        # Nothing that was typed became part of the page, and nothing went wrong unseen.
        assert not browser.find_elements("css selector", "#answer b")
        assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []


def test_looking_inside(browser):
    """Tokens, lines between them, and what stands in the place of a token that is clicked."""
    from selenium.webdriver.support.ui import WebDriverWait

    def texts(selector):  # all at once: the page may draw anew in between
        return browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector
        )

    with serving("masked_words") as (address, _):
        ask(browser, address, text="the cat sat")
        wait = WebDriverWait(browser, PATIENCE)
        browser.find_element("css selector", "#inside summary").click()
        tokens = ["[CLS]", "the", "cat", "sat", "[SEP]"]
        wait.until(lambda _: texts("#lines text") == [t for token in tokens for t in (token,) * 2])
        lines = len(browser.find_elements("css selector", "#lines line"))
        assert 5 < lines <= 25
        assert texts("#head option") == ["all (mean)", "1", "2"] and texts("#layer option") == ["1"]
        browser.find_elements("css selector", "#lines text")[4].click()  # "cat" on the left
        wait.until(lambda _: texts("#lines text")[4] == "[MASK]")
        wait.until(lambda _: texts("#candidates p") == ["Token 2, hidden:"])
        assert len(texts("#candidates tr")) == 5
        assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []


def test_the_page_shows_what_was_wrong(browser):
    with serving("classification") as (address, _):
        browser.get(address)
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(browser, PATIENCE)
        wait.until(lambda b: b.find_elements("tag name", "button"))
        browser.execute_script("document.getElementById('text').value = 'a'.repeat(2000000)")
        browser.find_element("tag name", "button").click()
        error = browser.find_element("id", "error")
        wait.until(lambda _: error.text)
        assert "larger than 1,000,000 bytes" in error.text
