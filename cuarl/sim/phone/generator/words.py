"""Words of which names, titles and texts are made: lists of them, and made-up ones of syllables.

About one in six is held out: it stands in no task but those that are held out by object, and nothing else does there.
"""

from __future__ import annotations

from cuarl.sim.phone.generator.draw import Draw, share_of

HELD_OUT_SHARE = 1 / 6

FIRST = """
Abel Agnes Aldo Alva Amir Anja Anton Arlo Asta Aurel Basil Bela Bianca Boris Bruno Carl Celia Cora Cyrus Dalia Dario
Delia Dora Edgar Edith Elias Elmo Elsa Emil Enzo Erna Esra Ezra Fabio Felix Fiona Flora Frida Gesa Gilda Greta Hanno
Hector Hilda Hugo Ida Igor Ilse Inga Irina Isak Ivo Jana Jasper Joel Jonas Juno Kaito Kamal Karin Kasim Kira Klara
Lars Leila Lena Leon Linus Livia Lucia Luka Magda Malik Marco Marla Mats Mila Milo Mina Nadia Naomi Nico Nils Nora
Olga Omar Orla Oskar Otto Paula Pavel Petra Pia Quinn Rafael Ralf Rana Remy Rita Rosa Rufus Ruth Samir Selma Silas
Simon Sofia Sven Talia Tarek Tessa Theo Tilda Timo Ulla Ugo Vera Viktor Vito Wanda Wim Xenia Yara Yusuf Zelda Zora
"""
LAST = """
Abbas Adler Alvarez Amato Arendt Ayala Bakke Barros Becker Berg Bianchi Blom Borg Brandt Bruun Byrne Calder Castro
Chavez Cohen Conti Costa Dahl Danner Diaz Dolan Dorsey Duarte Ekman Engel Esposito Farkas Ferro Fischer Foley Franke
Fuchs Galli Garcia Gomes Greco Haas Hagen Halim Hansen Hart Heller Hoang Holm Horvat Ivanov Jansen Jarvis Jung Kaya
Keller Khan Kimura Klein Kovac Kraus Lange Larsen Leone Lopes Lund Maier Marin Mendes Mertens Molina Moreau Mori Nagy
Navarro Nguyen Nolan Olsen Orlov Osman Pace Pavlov Peters Pohl Prior Quist Ramos Rao Reyes Ricci Riedel Roth Russo
Sahin Salas Santos Schmidt Serra Sharma Silva Sorel Sousa Stark Tanaka Torres Tran Ueda Valdez Vargas Vega Vogel
Wagner Weiss Winter Wolff Yilmaz Young Zeman Ziegler
"""
NOUNS = """
anchor apron arrow badge barrel basket bench bicycle blanket boat book bottle bracket branch brick bridge broom bucket
button cabin cable camera candle canoe carpet carrot castle chair chalk cherry circle clay clock closet coffee compass
copper corner cotton cradle crystal cushion desk dinner door drawer drum easel engine envelope fabric feather fence
ferry flag flute forest fountain frame garage garden garlic gate ginger glass glove gravel guitar hammer harness
helmet hinge honey island jacket jar kettle keyboard kitchen ladder lamp lantern lemon letter linen lock maple marble
market mason meadow medal mirror motor mountain napkin needle notebook olive onion orchard oven paddle paint parcel
pasture pencil pepper piano pillow pipe planet plate pocket pond porch pottery pump quilt radio raft rail ribbon river
rocket roof rope ruler saddle salad sandal scarf school scissors shed shelf shovel silver sofa spoon spring stable
statue stone stove sugar summit table tailor tea tent thread ticket tile timber tower tractor tray trumpet tunnel
umbrella valley varnish velvet violin voyage wagon walnut wheel whistle willow window wool workshop yarn zipper
"""
ADJECTIVES = """
amber annual autumn azure bitter blank bold brass brief bright broad broken busy calm central cheap civic clean clever
coastal cold coral crisp curly daily damp dark deep distant double dusty early eastern empty extra faint fancy final
first flat fresh frozen gentle giant golden grand green grey hidden hollow humble icy ivory jolly large late light
little local lonely loose lost lucky lunar main mellow minor misty modern muddy narrow native neat new noble northern
odd old open orange outer pale paper patient plain polite proud public purple quick quiet rapid rare red rough round
royal rural rusty sandy second secret shallow sharp short silent simple single sleepy slim slow small smooth snowy
soft solar solid southern spare square steady steep still stormy sunny sweet swift tall thick thin third tidy tiny
tropical urban vacant velvet warm weekly western white wide wild windy winter wise wooden yellow young
"""
ONSETS = """
b br c ch d dr f fl g gr h j k kl l m n p pl qu r s sh st t tr v w z
"""
VOWELS = """
a e i o u ai ea io ou
"""
CODAS = """
b d k l m n nd r rn s sk st t x
"""


class Words:
    """What texts are made of: the common words, or the held-out ones alone."""

    def __init__(self, held_out: bool) -> None:
        self._held_out = held_out
        self.first, self.last = self._kept(FIRST), self._kept(LAST)
        self.nouns, self.adjectives = self._kept(NOUNS), self._kept(ADJECTIVES)
        self._onsets, self._vowels, self._codas = ONSETS.split(), VOWELS.split(), CODAS.split()

    def _kept(self, text: str) -> list[str]:
        return [word for word in text.split() if is_held_out(word) == self._held_out]

    def made_up(self, draw: Draw) -> str:
        """A word that nobody knows, of two or three syllables, in lower case."""
        while True:
            syllables = [draw.choose(self._onsets) + draw.choose(self._vowels) for _ in range(draw.between(1, 2))]
            word = "".join(syllables) + self._closing(draw)
            if len(word) <= 9 and is_held_out(word) == self._held_out:
                return word

    def _closing(self, draw: Draw) -> str:
        return draw.choose(self._onsets)[0] + draw.choose(self._vowels)[0] + draw.choose(self._codas)

    def noun(self, draw: Draw) -> str:
        """A noun in lower case, one in five made up."""
        return self.made_up(draw) if draw.chance(0.2) else draw.choose(self.nouns)

    def person(self, draw: Draw) -> str:
        """First and last name."""
        first = self.made_up(draw).capitalize() if draw.chance(0.15) else draw.choose(self.first)
        last = self.made_up(draw).capitalize() if draw.chance(0.15) else draw.choose(self.last)
        return f"{first} {last}"

    def title(self, draw: Draw) -> str:
        """One or two words, the first with a capital."""
        noun = self.noun(draw)
        return noun.capitalize() if draw.chance(0.3) else f"{draw.choose(self.adjectives).capitalize()} {noun}"

    def sentence(self, draw: Draw) -> str:
        """A short text as people write it into notes and messages."""
        noun, other, adjective = self.noun(draw), self.noun(draw), draw.choose(self.adjectives)
        name = draw.choose(self.first)
        return draw.choose(
            (
                f"The {adjective} {noun} is here",
                f"Bring the {noun} and the {other}",
                f"Ask {name} about the {noun}",
                f"{name} has the {adjective} {noun}",
                f"{noun.capitalize()}, {other}",
                f"No {noun} today",
                f"The {noun} is by the {other}",
                f"Buy a {adjective} {noun}",
            )
        )


def is_held_out(word: str) -> bool:
    """Whether a word belongs to the held-out ones."""
    return share_of(f"word/{word.lower()}") < HELD_OUT_SHARE
