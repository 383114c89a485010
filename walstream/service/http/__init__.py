"""HTTP: the same status for a probe, a dashboard and a person.

A thread of the supervisor serves it from the workers' last reports: a request asks no
server and reaches no stream. `server` and `app` are imported only where the listener is
switched on: no other module loads starlette, uvicorn or prometheus_client.
"""
