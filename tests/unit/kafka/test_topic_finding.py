"""The same fault of many topics is one finding; its command names the first few."""

from walstream.errors import ConfigError, Repair
from walstream.finding import Severity
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topic_finding import Remark, Tools, grouped

PLAIN = Tools.of({}, "h:1,h:2")
SMALL = Remark("size", Severity.WARNING, "is small", "why", PLAIN.set(a_b="5"))


def test_one_topic_is_named_alone() -> None:
    (found,) = grouped([("t", SMALL)])
    assert (found.subject, found.what) == ("topic t", "is small")
    assert found.repair.command == (
        "kafka-configs.sh --bootstrap-server h:1,h:2 --alter --entity-type topics"
        " --entity-name t --add-config a.b=5"
    )
    assert not found.repair.then


def test_a_thousand_topics_are_one_finding() -> None:
    (found,) = grouped([(f"t{number}", SMALL) for number in range(1000)])
    assert found.subject == "topics t0, t1, t2 and 997 more"
    assert found.what == "each is small"
    lines = found.repair.command.splitlines()
    assert [line.split("--entity-name ")[1].split()[0] for line in lines] == [
        "t0",
        "t1",
        "t2",
    ]
    assert found.repair.then == "the same for the other 997"


def test_different_faults_stay_apart_in_their_order() -> None:
    other = Remark("size", Severity.WARNING, "is large", "why")
    found = grouped([("a", other), ("b", SMALL), ("c", other)])
    assert [one.subject for one in found] == ["topics a, c", "topic b"]


def test_a_command_that_names_no_topic_stands_once() -> None:
    accept = Repair(command="walstream run --accept-partitions")
    remark = Remark("p", Severity.STOP, "has 3", "", accept, 3)
    (found,) = grouped([("a", remark), ("b", remark)])
    assert found.repair == accept
    assert found.exit_code == 3


def test_a_remark_of_an_error_ends_as_the_error_does() -> None:
    error = ConfigError("bad", hint="mend it", repair=Repair())
    remark = Remark.of(error, "c", what="", repair=Repair(then="x"))
    assert (remark.what, remark.why, remark.exit_code) == ("bad", "mend it", 2)


def test_rights_are_granted_to_a_login_with_a_name() -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.username": "the app"}
    repair = Tools.of(login, "h:1").grant("DESCRIBE_CONFIGS", "WRITE")
    assert repair.command == (
        "kafka-acls.sh --bootstrap-server h:1 --add"
        " --allow-principal 'User:the app' --operation DescribeConfigs"
        " --operation Write --topic {topic} --command-config admin.properties"
    )
    assert "admin.properties holds the login" in repair.then


def test_rights_of_nobody_by_name_are_asked_in_words() -> None:
    repair = Tools.of({"sasl.username": "unused"}, "h:1").grant("WRITE")
    assert not repair.command
    assert "WRITE" in repair.then


def test_a_topic_is_created_as_the_sink_would() -> None:
    creation = Creation(
        allowed=False, partitions=3, replication=2, config={"cleanup.policy": "a b"}
    )
    assert PLAIN.create(creation, "a.b").command == (
        "kafka-topics.sh --bootstrap-server h:1,h:2 --create --topic {topic}"
        " --partitions 3 --replication-factor 2 --config 'cleanup.policy=a b'"
    )
    assert PLAIN.create(Creation(allowed=False), "a.b").command.endswith(
        "--topic {topic}"
    )


def test_a_topic_grows_and_is_named() -> None:
    repair = PLAIN.grow(6).of_topic("a.b")
    assert repair.command == (
        "kafka-topics.sh --bootstrap-server h:1,h:2 --alter --topic a.b --partitions 6"
    )


def test_offsets_of_a_group_are_set() -> None:
    repair = PLAIN.offsets("my group", "t:3", "--to-offset 7")
    assert repair.command == (
        "kafka-consumer-groups.sh --bootstrap-server h:1,h:2 --group 'my group'"
        " --topic t:3 --reset-offsets --to-offset 7 --execute"
    )
