"""A task of BrowserGym with a page of its own: a field, a button, a drop target, and the question what it says."""

from __future__ import annotations

from browsergym.core.registration import register_task
from browsergym.core.task import AbstractBrowserTask

PAGE = """data:text/html,<title>desk</title><body style='margin:0;background:white'>
<button style='position:absolute;left:0;top:0;width:120px;height:40px'
onclick='window.pressed=(window.pressed||0)+1'>Send</button>
<input id='word' style='position:absolute;left:0;top:60px;width:120px;height:30px'>
<div style='height:3000px'></div>
"""


class Desk(AbstractBrowserTask):
    """Write a word into the field and press the button, or answer with it, as ``how`` says."""

    @classmethod
    def get_task_id(cls):
        return "cuarl.desk"

    def __init__(self, seed, how="write"):
        super().__init__(seed)
        self.viewport = {"width": 320, "height": 200}
        self.word, self._how = self.random.choice(["lamp", "door", "bird"]), how

    def setup(self, page):
        page.goto(PAGE)
        verb = "Write" if self._how == "write" else "Answer"
        return f"{verb} {self.word}.", {}

    def validate(self, page, chat_messages):
        said = [one["message"] for one in chat_messages if one["role"] == "assistant"]
        if self._how == "write":
            done = (
                page.evaluate("window.pressed") == 1
                and page.evaluate("document.querySelector('#word').value") == self.word
            )
        else:
            done = said[-1] == self.word
        told = {"scrolled": page.evaluate("scrollY"), "said": said[-1]}
        return float(done), bool(done), "", told


register_task(Desk.get_task_id(), Desk)
