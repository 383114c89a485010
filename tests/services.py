"""Where the tests' servers come from: WALSTREAM_TEST_SERVICES."""

import gc
import os
import warnings
from contextlib import ExitStack
from typing import Final

import pytest

_KINDS: Final = ("embedded", "docker", "external")


def chosen() -> str:
    kind = os.environ.get("WALSTREAM_TEST_SERVICES", "embedded")
    if kind not in _KINDS:
        pytest.exit(f"WALSTREAM_TEST_SERVICES={kind}: choose of {', '.join(_KINDS)}", 2)
    return kind


def external(variable: str) -> str:
    """Read what the environment names, or skip and say what to set."""
    if value := os.environ.get(variable):
        return value
    pytest.skip(f"WALSTREAM_TEST_SERVICES=external, but {variable} is not set")


def needs_own_servers() -> None:
    if chosen() != "embedded":
        pytest.skip("ends its own servers: needs WALSTREAM_TEST_SERVICES=embedded")


def container(
    stack: ExitStack,
    image: str,
    ports: dict[int, int],  # in the container: here
    environment: dict[str, str],
    command: str | None = None,
) -> str:
    """Start a public image, and return the host that it is reached at."""
    refusal = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs to mend
        from docker.errors import DockerException  # noqa: PLC0415 - only used here
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        try:
            asked = DockerContainer(image).with_envs(**environment)
            for inside, here in ports.items():
                asked.with_bind_ports(inside, here)
            if command is not None:
                asked.with_command(command)
            host = str(stack.enter_context(asked).get_container_host_ip())
        except DockerException as error:
            refusal = str(error)
        gc.collect()  # while nobody hears of the sockets that it leaves open
    if refusal:
        pytest.skip(f"{image}: no container engine answers ({refusal})")
    return host
