"""A page on which a person works a device: in the place of an agent, or beside a policy that is corrected.

``Session`` is what both sides meet in: agents (``agent``) put a question for each turn, and the page (``page``) shows
it and brings the answer. There is one episode at a time, since there is one person.
"""
