"""HTTP: the same truth for a probe, a dashboard and a person.

Served by a thread of the supervisor from what its workers told last: a request asks no
server, and nothing that a request does reaches a stream. `face` is imported where the
listener is switched on, and no other module loads starlette, uvicorn or
prometheus_client.
"""
