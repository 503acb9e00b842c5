"""Which page of the key-value buffer holds what: free pages, pages in use, a tree of prefixes to use again.

Keys and values of a token depend on all tokens and pictures before it. So a page is known by the chain of pages that
leads to it, each named by its token ids and the digests of the pictures whose tokens are in it: no hash that could
collide. Pages are shared by all rows that begin alike, over turns too. A prompt whose window has moved (an old
screenshot dropped) differs from there on, and is computed anew from there on. Pure Python, no tensors.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

PAGE = 16
"""Tokens a page."""

SCRATCH = 0
"""The page that rows without a request write to."""

Key = tuple[tuple[int, ...], tuple[str, ...]]
"""The token ids of a full page, and the digests of the pictures that they show parts of."""


class Node:
    """A full page that may be used again."""

    __slots__ = ("children", "key", "number", "page", "parent", "tick", "users")

    def __init__(self, key: Key, page: int, parent: Node | None, number: int = 0) -> None:
        self.key, self.page, self.parent, self.number = key, page, parent, number
        self.children: dict[Key, Node] = {}
        self.users = 0
        self.tick = 0


class OutOfPages(RuntimeError):
    """More pages are needed than there are."""


class Pages:
    """Hands out the pages 1 to ``count`` - 1; page 0 is for scratch."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count - 1, 0, -1))
        self._root = Node(((), ()), SCRATCH, None)
        self._tick = 0
        self._nodes = 0

    @property
    def free(self) -> int:
        """Pages that hold nothing."""
        return len(self._free)

    def grow(self, count: int) -> None:
        """Have ``count`` pages from now on."""
        self._free = [*range(count - 1, self.count - 1, -1), *self._free]
        self.count = count

    def find(self, keys: Sequence[Key]) -> list[Node]:
        """The longest known beginning of ``keys``. It stays until ``leave`` is called with it."""
        self._tick += 1
        found: list[Node] = []
        node = self._root
        for key in keys:
            child = node.children.get(key)
            if child is None:
                break
            child.users += 1
            child.tick = self._tick
            found.append(child)
            node = child
        return found

    def share(self, chain: Sequence[Node]) -> None:
        """One user more of each page of a chain."""
        for node in chain:
            node.users += 1

    def leave(self, chain: Sequence[Node]) -> None:
        """One user less."""
        for node in chain:
            node.users -= 1

    def take(self, count: int) -> list[int]:
        """``count`` pages of one's own. Raises OutOfPages, taking none."""
        if count > len(self._free):
            self._evict(count - len(self._free))
        if count > len(self._free):
            raise OutOfPages(f"{count} pages are needed, {len(self._free)} are free of {self.count}")
        return [self._free.pop() for _ in range(count)]

    def give(self, pages: Sequence[int]) -> None:
        """Return pages of one's own."""
        self._free += pages

    def remember(self, chain: Sequence[Node], keys: Sequence[Key], pages: Sequence[int]) -> list[Node]:
        """Let ``pages``, full and behind ``chain``, be used again under ``keys``; the nodes, used once each.

        Pages that are known already are returned to the free ones, and the known ones stand for them.
        """
        self._tick += 1
        node = chain[-1] if chain else self._root
        found: list[Node] = []
        for key, page in zip(keys, pages, strict=True):
            child = node.children.get(key)
            if child is None:
                self._nodes += 1
                child = node.children[key] = Node(key, page, node, self._nodes)
            else:
                self._free.append(page)
            child.users += 1
            child.tick = self._tick
            found.append(child)
            node = child
        return found

    def forget(self) -> None:
        """Make all known pages free: the weights have changed. Nobody may be using one."""
        nodes = list(self._walk())
        assert not any(n.users for n in nodes), "a page in use can't be forgotten"
        self._free += [n.page for n in nodes]
        self._root.children.clear()

    def _walk(self) -> Iterator[Node]:
        stack = list(self._root.children.values())
        while stack:
            node = stack.pop()
            stack += node.children.values()
            yield node

    def retire(self, age: int) -> None:
        """Free known pages that nobody uses and that were not looked for in the last ``age`` calls of ``find``."""
        self._evict(self.count, self._tick - age)

    def _evict(self, count: int, before: int | None = None) -> None:
        """Free up to ``count`` known pages that nobody uses, those that were not looked for longest first.

        Of equals the one that is known longest: what is evicted depends on what was asked for alone.
        """
        leaves = [(n.tick, n.number, n) for n in self._walk() if not n.users and not n.children]
        heapq.heapify(leaves)
        while count and leaves and (before is None or leaves[0][0] < before):
            _, _, node = heapq.heappop(leaves)
            parent = node.parent
            assert parent is not None
            del parent.children[node.key]
            self._free.append(node.page)
            count -= 1
            if parent is not self._root and not parent.users and not parent.children:
                heapq.heappush(leaves, (parent.tick, parent.number, parent))


def page_keys(ids: Sequence[int], image: int, pictures: Sequence[tuple[str, int]]) -> list[Key]:
    """The key of every full page of ``ids``; ``pictures``: digest and number of tokens, in the order of tokens."""
    owners = [digest for digest, tokens in pictures for _ in range(tokens)]
    keys: list[Key] = []
    seen = 0
    for start in range(0, len(ids) - PAGE + 1, PAGE):
        page = tuple(ids[start : start + PAGE])
        count = page.count(image)
        keys.append((page, tuple(dict.fromkeys(owners[seen : seen + count]))))
        seen += count
    return keys
