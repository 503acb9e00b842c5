"""What the apps of social networks share: a feed of posts, people to follow, one's own profile, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Open, Put, Remove, Replace, Show
from cuarl.sim.phone import forms
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, switch, text_field, value_row

TABS = (("Feed", "feed", "home"), ("People", "people", "people"), ("Profile", "me", "person"))


@dataclass(frozen=True, slots=True)
class Post:
    """A post; ``subject`` is what its picture shows, if it has one."""

    title: str
    author: str
    text: str
    likes: int
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """One social network. Its app's key is also the section of the state that holds what is liked and followed."""

    app: AppModule
    name: str
    posts: Sequence[Post]
    people: Mapping[str, str]
    """What people write about themselves, by name."""

    def install(self) -> None:
        """Give the app its pages."""
        pages = {
            "feed": self.feed,
            "post": self.post,
            "people": self.find,
            "person": self.person,
            "me": self.me,
            "liked": self.liked,
            "settings": self.settings,
        }
        for name, builder in pages.items():
            self.app.page(name)(builder)

    def _path(self, name: str) -> str:
        return f"{self.app.key}.{name}"

    def _screen(self, ctx: Context, body: tuple[w.Widget, ...], top: tuple[w.Widget, ...] = ()) -> Screen:
        page = ctx.page.partition("/")[2]
        tabs = tuple(
            w.Tab(label, Replace(f"{self.app.key}/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS
        )
        return Screen(self.name, body, top=top, bottom=(w.HBox(tabs, height=32),))

    # --- posts -----------------------------------------------------------------------------------------------------

    def feed(self, ctx: Context) -> Screen:
        """Posts, in this device's own order."""
        body = [widget for post in ctx.shuffled(self.posts) for widget in self._shown(ctx, post)]
        return self._screen(ctx, tuple(body))

    def _shown(self, ctx: Context, post: Post) -> tuple[w.Widget, ...]:
        show = Open(f"{self.app.key}/post:{post.title}")
        if post.subject:
            content: w.Widget = w.HBox((w.Picture(post.title, show, subject=post.subject, height=86),), pad=8)
        else:
            content = w.Card(post.title, show, text=post.text)
        author = w.Paragraph(post.author, 11.5, muted=False)
        foot = w.HBox((self._like(ctx, post), w.Paragraph(self._count(ctx, post))), (1, 5), height=26, gap=0, pad=4)
        return author, content, foot, w.Divider()

    def _like(self, ctx: Context, post: Post) -> w.IconButton:
        path, on = self._path("liked"), post.title in ctx.get(self._path("liked"))
        effect = Remove(path, post.title) if on else Append(path, post.title)
        return w.IconButton(f"{'Unlike' if on else 'Like'} {post.title}", effect, icon="heart", active=on)

    def _count(self, ctx: Context, post: Post) -> str:
        return f"{post.likes + (post.title in ctx.get(self._path('liked')))} likes"

    def post(self, ctx: Context) -> Screen:
        """One post."""
        post = next((p for p in self.posts if p.title == ctx.arg), None)
        if post is None:
            return Screen("Post", forms.empty("There is no such post."))
        picture = (w.HBox((w.Picture("Picture", subject=post.subject, height=120),), pad=8),) if post.subject else ()
        body = (
            *picture,
            w.Paragraph(post.title, 14, muted=False),
            w.Paragraph(post.text, 12, muted=False),
            w.Paragraph(self._count(ctx, post)),
            w.Row(post.author, Open(f"{self.app.key}/person:{post.author}"), icon="person", subtitle="Author"),
        )
        return Screen("Post", body, (self._like(ctx, post),))

    # --- people ----------------------------------------------------------------------------------------------------

    def find(self, ctx: Context) -> Screen:
        """Everyone, with a search."""
        path = f"ui.form.{self.app.key}.query"
        query = str(ctx.get(path)).strip().lower()
        rows = tuple(self._person_row(ctx, name) for name in self.people if query in name.lower())
        field = text_field(ctx, "Search people", path, search=True)
        return self._screen(ctx, rows or forms.empty("Nobody found"), (field,))

    def _person_row(self, ctx: Context, name: str) -> w.Row:
        followed = name in ctx.get(self._path("following"))
        show = Open(f"{self.app.key}/person:{name}")
        return w.Row(name, show, subtitle="Following" if followed else self.people[name], icon="person")

    def person(self, ctx: Context) -> Screen:
        """Someone's profile."""
        name = ctx.arg
        if name not in self.people:
            return Screen("Profile", forms.empty("There is no such person."))
        path = self._path("following")
        if name in ctx.get(path):
            ask = confirmation(f"Unfollow {name}?", "You will not see new posts.", Remove(path, name), "Unfollow")
            button = w.Button("Following", Show(ask), icon="check")
        else:
            button = w.Button("Follow", Append(path, name), look="filled", icon="plus")
        posts = [p for p in self.posts if p.author == name]
        body = (
            w.Space(4),
            w.Display(name, 20, height=32),
            w.Paragraph(self.people[name], 12, align="centre"),
            w.HBox((button,), pad=40),
            w.Header("Posts"),
            *(self._post_row(p) for p in posts),
        )
        return Screen("Profile", body)

    def _post_row(self, post: Post) -> w.Row:
        icon = "photo" if post.subject else "note"
        return w.Row(post.title, Open(f"{self.app.key}/post:{post.title}"), subtitle=post.text, icon=icon)

    def me(self, ctx: Context) -> Screen:
        """One's own profile."""
        following = [name for name in ctx.get(self._path("following")) if name in self.people]
        key = self.app.key
        body = (
            w.Space(4),
            w.Display("You", 22, height=32),
            value_row("Account", "Private" if ctx.get(self._path("private")) else "Public", icon="lock"),
            w.Row("Liked posts", Open(f"{key}/liked"), value=str(len(ctx.get(self._path("liked")))), icon="heart"),
            w.Row("Settings", Open(f"{key}/settings"), icon="gear"),
            w.Header(f"Following {len(following)}"),
            *(self._person_row(ctx, name) for name in following),
        )
        return self._screen(ctx, body)

    def liked(self, ctx: Context) -> Screen:
        """Posts with a heart."""
        liked = ctx.get(self._path("liked"))
        rows = tuple(self._post_row(p) for p in self.posts if p.title in liked)
        forget = confirmation("Unlike all?", f"{len(rows)} posts", Put(self._path("liked"), ()), "Unlike")
        actions = (w.IconButton("Unlike all", Show(forget), icon="trash"),) if rows else ()
        return Screen("Liked posts", rows or forms.empty("No liked posts"), actions)

    def settings(self, ctx: Context) -> Screen:
        """Settings of the network."""
        key = self.app.key
        rows = (
            switch(ctx, "Private account", self._path("private"), "Only followers see you"),
            switch(ctx, "Show activity", self._path("show_activity"), "When you were here"),
            switch(ctx, "Autoplay videos", self._path("autoplay")),
            switch(ctx, "Save pictures", self._path("save_pictures"), "Keep your own posts"),
            switch(ctx, "Notifications", f"apps.{key}.notifications"),
            link(ctx, "Permissions", f"settings/app_permissions:{key}", "Camera, location"),
        )
        return Screen("Settings", ctx.shuffled(rows))
