"""The monitor in a browser: pages made on the server, a little CSS and JavaScript of our own, nothing else.

``app`` puts it together; ``views`` makes the pages and ``api`` the JSON, both from ``store.pages``. Everything on a
page comes from models, devices and people whom nobody vouches for: see ``templating`` for how it is kept from doing
anything.
"""
