"""What all servers of this project share: who may ask, how much and how long, and how a refusal is said.

``Rules`` are those of one server, ``application`` puts them before its routes, and ``serving`` listens. A server writes
handlers that may raise ``Refusal``; everything else is done here, once.
"""
