"""[sinks.NAME.oauth]: where the tokens of SASL/OAUTHBEARER come from."""

from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import Field, model_validator

from walstream.config.field import PasswordCommand, Section

PROPERTY: Final = "walstream.oauth"
"""By it a client's properties carry the section to wherever a client is made."""
_PACKAGE: Final = "package:"
_MECHANISMS: Final = frozenset({"sasl.mechanism", "sasl.mechanisms"})
_PROVIDERS: Final = ("aws_msk_iam", "command")


class OAuth(Section):
    provider: str = Field(
        description="Provider of tokens: aws_msk_iam, command, or package:NAME for "
        "one that an installed package adds.",
    )
    region: str = Field(default="", description="AWS region, for aws_msk_iam.")
    command: PasswordCommand = Field(
        default=[],
        description='A command and its arguments that print {"token": "…", '
        '"expires_in": 300} in JSON; walstream runs it without a shell.',
    )
    options: dict[str, Any] = Field(
        default={}, repr=False, description="Options of the package's provider."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        package = self.provider.removeprefix(_PACKAGE)
        if self.provider not in _PROVIDERS and (
            package == self.provider or not package
        ):
            raise ValueError(
                f'provider is "{self.provider}": write {", ".join(_PROVIDERS)}, or'
                f" {_PACKAGE}NAME"
            )
        if self.provider == "command" and not self.command:
            raise ValueError("has no command: write the program and its arguments")
        if self.provider == "aws_msk_iam" and not self.region:
            raise ValueError('has no region: write one, as in "eu-west-1"')
        return self


def with_oauth(properties: Mapping[str, str], oauth: OAuth | None) -> dict[str, str]:
    """Put the section into a client's properties; what has it stays as it is."""
    if oauth is None:
        return dict(properties)
    found = {**properties, PROPERTY: oauth.model_dump_json()}
    if not properties.keys() & _MECHANISMS:
        found["sasl.mechanism"] = "OAUTHBEARER"
    return found
