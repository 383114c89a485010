"""Schedules that found a defect of walstream once, made short."""

from typing import Final

import pytest

from tests.simulation.installation import installed
from tests.simulation.run import run
from tests.simulation.schedule import Schedule

FOUND: Final = {
    # the second sink of a process that was frozen delivered what it had, as it closed
    "frozen with two sinks": (
        '{"seed":508,"commits":[],"faults":[],"kills":[],"freezes":[],'
        '"instances":[[0.0852,"freeze behind Kafka"]]}'
    ),
    # a root was added again and read, while a partition of it was detached: rows that
    # came back with the partition were not read
    "detached while its root is added again": (
        '{"seed":700588,"commits":[[0.2512,3043902033],[0.2996,4126213552],'
        "[0.9432,977023703],[1.2658,429069302],[2.7609,526848828]],"
        '"faults":[],"kills":[],"freezes":[],'
        '"ddl":[[0.3005,"detach"],[0.9704,"drop and add table"]]}'
    ),
    # a sink came back while the stream ended: its own worker had sent more than the
    # position that the stream said it drained at
    "came back in a drain": (
        '{"seed":10014677,"commits":[[0.0115,1970650380],[0.1306,2349542351],'
        "[1.5925,4085162377],[2.3381,2098695559],[3.1399,2693716646],[4.3489,"
        "761539040],[4.6914,2608681838],[5.3532,264837204],[5.5973,1025519950],"
        "[6.4329,2839359513],[6.5929,1496186253],[6.8103,1602837036],[7.4439,"
        "849388845],[9.907,3681916194],[14.3172,594863215],[14.6915,2577031126],"
        '[15.3421,2939285604],[18.9867,2914108124]],"faults":[[1.3895,'
        '"narrow topic"],[1.9527,"narrow topic"],[8.1827,"narrow topic"],'
        '[16.5984,"stop"]],"kills":[282],"freezes":[[186,5.0]],"reads":[[12.0596,'
        '"public.two"],[14.6477,"public.three"],[16.9041,"public.one"]]}'
    ),
    # likewise, and the stream had heard nothing for a while: it stopped below
    "came back ahead of a silent stream": (
        '{"seed":70015152,"commits":[[1.9958,420429286],[2.7192,2034869596],[2.'
        "7222,44231320],[3.1311,4223876615],[3.1901,2043235098],[3.9673,1212636"
        "099],[4.4867,2107990134],[4.6085,400449852],[5.9559,3234509759],[6.467"
        "1,1604647283],[6.7406,1010041223],[7.6853,3789365198],[8.5584,10780421"
        "98],[9.3185,4024072718],[9.6268,2240726143],[11.2519,853716289],[11.59"
        '98,3098135829],[11.6509,3005193399]],"faults":[[6.0736,"slow partition'
        '"],[9.2595,"silence"],[14.5506,"stop"]],"kills":[],"freezes":[]}'
    ),
    # where a relay began was not stored: of a partition that it found empty nobody
    # knew what was deleted before it was read
    "deleted before a first record was relayed": (
        '{"seed":105,"commits":[[2.6434,545659014]],"faults":[],"kills":[],'
        '"freezes":[],"relays":[[0.0286,"freeze at a call"],[0.1599,"retention"]]}'
    ),
    # the stream was to go up to a snapshot of a server that another one replaced, and
    # waited for WAL that the new one had not
    "promoted after a snapshot was taken": (
        '{"seed":74004279,"commits":[[0.0646,344273952],[0.2089,3941956839],'
        '[0.2912,4282807547]],"faults":[[0.045,"slow partition"],[0.0689,'
        '"Kafka away"],[0.4625,"failover"]],"kills":[129,45],"freezes":[],'
        '"rows":[["one",3],["three",6]]}'
    ),
    # a Truncate was deleted in one partition before the group began there; the others
    # had it still, and rows that came behind it went with those before it
    "a Truncate of some partitions took newer rows": (
        '{"seed":32880,"commits":[[0.2307,1717964350],[0.4427,2668696881],[1.6964,'
        '4019220044]],"faults":[],"kills":[],"freezes":[],'
        '"members":[[0.0589,"kill"],[0.2486,"retention"]]}'
    ),
    # a partition waited at a Truncate for one that waited at another, and stopped
    # the group just before that one went on
    "a Truncate behind one that is waited for": (
        '{"seed":79167407,"commits":[[2.7817,2844185027],[4.6665,1497506371],[5'
        ".4175,251741185],[5.4287,3507402453],[8.5611,1808468395],[10.5769,3902"
        '567045],[14.2872,1842239409]],"faults":[],"kills":[],"freezes":[],"rea'
        'ds":[[7.5525,"public.one"],[17.0943,"public.three!"],[18.4483,"public.'
        'three"]],"members":[[0.0451,"retention"],[0.0635,"freeze"],[0.1141,"jo'
        'in"],[0.1157,"freeze"],[0.164,"expel"],[0.2485,"retention"],[0.2791,"r'
        'ebalance"],[0.4186,"kill"],[0.4257,"rebalance"]]}'
    ),
    # how far a read of a table was is on disk, though the write failed: a second
    # Truncate went out, and the next start began behind the rows that it took
    "a failed write of a read's progress was durable": (
        '{"seed":79241893,"commits":[[7.5451,2388752949],[8.2837,1376458903],[9'
        '.8982,3590501170]],"faults":[[8.3673,"full disk"],[11.8639,"failed wri'
        'te"],[13.5972,"failed write"]],"kills":[708,590],"freezes":[],"ddl":[['
        '7.2139,"publish again"]],"transactions":[[0.0,"transactional"]]}'
    ),
    # a table that was refused three times is tried again later than was waited for
    "a refused table waits for minutes": (
        '{"seed":79426987,"commits":[],"faults":[[6.5356,"narrow topic"]],"kill'
        's":[8,35,34],"freezes":[],"reads":[[0.7062,"public.three"],[8.4923,"pu'
        'blic.one"],[9.35,"public.two"]],"ddl":[[6.0055,"publish again"],[8.421'
        '2,"publish again"],[11.3972,"publish again"]]}'
    ),
    # two transactions of one id were open in a partition, and one marker ended both
    "a part of a transaction came with the one before": (
        '{"seed":79028524,"commits":[[0.2711,2351337695],[0.9206,3577247004]],"'
        'faults":[[0.0,"refuse first"]],"kills":[109,724],"freezes":[],"rows":['
        '["one",6],["two",3],["three",3]],"transactions":[[0.0,"transactional"]'
        ',[0.9198,"leaderless"],[1.105,"leaderless"],[1.8481,"take over"]]}'
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_mended(name: str) -> None:
    with installed():
        assert not run(Schedule.from_json(FOUND[name])).violation
