"""A registry's refusals as errors: some are waited for, others stop the source."""

from walstream.errors import ConfigError, HistoryError, LoginRefused, Transient


class RegistryAway(Transient):
    """It does not answer, or not as a registry does: asked again."""


class RegistryRefused(LoginRefused):
    """It does not let this user in, or do that: asked again, with an alarm."""


class RegistryReadOnly(RegistryRefused):
    """It takes nothing new for now, and tells of what it has."""


class SchemaUnregistered(Transient):
    """A schema is not there, and walstream may not register it: waited for."""


class SchemaIncompatible(HistoryError):
    """A schema does not go with the subject's earlier ones."""


class SchemaRefused(ConfigError):
    """No registry would take it: its names, its defaults."""
