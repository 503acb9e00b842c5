"""Goals of tasks as rounds about drawn screens, beside the skills that a base was taught (``cuarl model imitate``)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from cuarl.agent import formats
from cuarl.agent.demonstration_points import within
from cuarl.agent.formats import Format, Size
from cuarl.agent.wording import words
from cuarl.errors import AgentError
from cuarl.policy.tiny import GRID
from cuarl.pretrain.calls import Kind
from cuarl.pretrain.dialogues import Asked, Dialogues, Rows, Tokens, asked_of, cells, letters_of, rows_of, tokens_for
from cuarl.pretrain.moments import Moment, screen_of
from cuarl.pretrain.skills import Round
from cuarl.pretrain.soft import Softness, soft_rounds
from cuarl.pretrain.walks import Scene, Walk
from cuarl.sim.kit.render import render
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.generator.generate import Companions
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import World
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Action, Click, Finish, LongPress

LONGEST = 160
"""Most tokens of a goal with its answer; longer ones are left out."""
SKILLS = 10
"""Rounds of what the base was taught, about each screen: imitation alone unlearns it."""
SOFT = 0.4
"""Share of them that name what is to be found among words in no order."""
WORKED_ON, DONE = 2, 4
"""How many times as much as others the goal counts that is worked on, and that it is reached."""
KEPT = 0.7
"""Share of the screens of a walk that are learnt from, so that fewer of a batch are of one walk."""
SOFTNESS = Softness(follow=1.0, finish=0.0, held=None, elsewhere=0.0)
"""Whether something is as it should be is left to goals."""
TOGETHER = 100
"""Tasks drawn for one device."""
OF_A_PAGE = 40
"""Goals drawn about one page."""


@dataclass
class GoalMaker:
    """Makes batches from seeds; picklable, so that worker processes can have it."""

    tokenizer: str
    """Folder of the tokenizer."""
    system_prompts: Mapping[Kind, str]
    token: int
    """Pixels of an image token's side."""
    avoid: Sequence[TaskInstance]
    """What evaluation suites ask for: no generated goal comes near."""
    tasks: Sequence[Task] = ()
    """Further tasks of the phone to train on."""
    written: float = 0.35
    """Share of the walks that are about ``tasks``."""
    forbidden: frozenset[str] = frozenset()
    """Requests of skills that must not occur: the goals of all suites, case-folded."""
    walk: Walk = field(default_factory=Walk)
    skills: int = SKILLS

    @cached_property
    def _of_pages(self) -> dict[str, list[TaskInstance]]:
        return {}

    @cached_property
    def _companions(self) -> Companions:
        return Companions(self.avoid)

    def __call__(self, seed: int, count: int, kind: Kind, soft: float) -> Dialogues:
        """``count`` screens with the goals asked about each and some skills. ``seed`` and ``count`` alone decide."""
        rng = random.Random(f"goals/{seed}")
        tokens = tokens_for(self.tokenizer, self.system_prompts["phone"], cells("phone", self.token))
        moments, made = list[Moment](), list[list[tuple[list[int], list[int]]]]()
        scenes = self._scenes(rng, seed)
        while len(moments) < count:
            scene = next(scenes)
            if rng.random() > KEPT:
                continue
            moment = Moment(np.asarray(render(view(scene.world))), screen_of(scene.world))
            skills = soft_rounds(rng, moment.screen, self.skills, SOFTNESS, SOFT)
            rows = [*self._goals(rng, scene, tokens), *(tokens.row(r) for r in skills if self._may(r))]
            rng.shuffle(rows)
            moments.append(moment)
            made.append([row for row in rows if len(row[0]) <= LONGEST])
        asked: tuple[Asked, ...] = (asked_of(made),)
        past: tuple[Rows, ...] = (rows_of([]),)
        return Dialogues("phone", np.stack([m.picture for m in moments]), asked, past, letters_of(moments))

    def _scenes(self, rng: random.Random, seed: int) -> Iterator[Scene]:
        number = 0
        while True:
            yield from self.walk.scenes(rng, self._together(rng, f"walk{seed}-{number}"), self._about)
            number += 1

    def _together(self, rng: random.Random, key: str) -> list[TaskInstance]:
        """Tasks for one device."""
        if self.tasks and rng.random() < self.written:
            drawn = rng.sample(self.tasks, min(TOGETHER, len(self.tasks)))
            return [task.instantiate(rng.randrange(2**31)) for task in drawn]
        return [task.bind({}) for task in self._companions.drawn(key, TOGETHER)]

    def _about(self, page: str) -> Sequence[TaskInstance]:
        """Goals about a page, the same whenever it is met."""
        if page not in self._of_pages:
            self._of_pages[page] = [task.bind({}) for task in self._companions.about(page, OF_A_PAGE)]
        return self._of_pages[page]

    def _may(self, r: Round) -> bool:
        return r.request.casefold().rstrip(".") not in self.forbidden

    def _goals(self, rng: random.Random, scene: Scene, tokens: Tokens) -> Iterator[tuple[list[int], list[int]]]:
        """Ids and weights of the goals of a scene, the first of which is worked on."""
        for i, (task, action) in enumerate(scene.labels):
            try:
                call = said(rng, scene.world, action)
            except AgentError:  # a gesture that the vocabulary can't say
                continue
            ids, weights = tokens.row(Round(task.goal, call, "goal"))
            times = 1 if i else DONE if isinstance(action, Finish) else WORKED_ON
            yield ids, [w * times for w in weights]


def said(rng: random.Random, world: World, action: Action) -> str:
    """The answer that calls for ``action``, its taps spread over what they are meant for. Raises AgentError."""
    size = Size(world.profile.width_px, world.profile.height_px)
    if isinstance(action, Click | LongPress):
        aimed = [e for e in elements(world) if e.centre == (action.x, action.y) and e.role != "slider"]
        action = within(action, aimed[-1].box, size, rng) if aimed else action
    return words(_phone(), action, size, step=GRID)


@lru_cache(maxsize=1)
def _phone() -> Format:
    return formats.get("qwen3-vl", "phone")
