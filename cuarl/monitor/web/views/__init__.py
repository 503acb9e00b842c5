"""The pages.

Each view takes the desk and a request, and gives a page's template and values; ``app`` has the table of paths.
"""
