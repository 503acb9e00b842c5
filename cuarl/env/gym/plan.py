"""Plans for a gym's devices: what both a phone behind adb and a box can do, as long as it is not known which it is."""

from __future__ import annotations

from collections.abc import Mapping

from cuarl.env.adb.plan import ON_PHONES
from cuarl.env.gbox.plan import ABILITIES as IN_BOXES
from cuarl.env.gym.devices import Space
from cuarl.env.plans.devices import Abilities
from cuarl.types import Action


def _refuse(action: Action) -> str:
    return IN_BOXES["android"].refuse(action) or ON_PHONES.refuse(action)


ABILITIES: Mapping[Space, Abilities] = {
    "mobile": IN_BOXES["android"]._replace(name="a phone of a gym", refuse=_refuse),
    "pc": IN_BOXES["linux"]._replace(name="a desktop of a gym"),
}
