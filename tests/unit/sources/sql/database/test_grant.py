"""GRANT statements; those of real servers are run in tests/integration."""

from tests.support.servers.sqlite import Lite
from walstream.errors import NO_REPAIR
from walstream.sources.sql.database.grant import account, grant


def test_account_of_mysql_is_quoted_part_by_part() -> None:
    assert account("walstream@127.0.0.1") == "'walstream'@'127.0.0.1'"
    assert account("o'k@x@%") == "'o''k@x'@'%'"


def test_engine_of_another_grammar_gets_no_statement(lite: Lite) -> None:
    with lite.session() as connection:
        assert grant(connection, "", "t") is NO_REPAIR
