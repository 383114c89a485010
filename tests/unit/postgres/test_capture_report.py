"""A report of what is captured is bounded."""

from walstream.postgres.capture_report import CaptureLimit, capture_report


def test_limits_beyond_fifty_are_counted() -> None:
    limits = {f"public.t{number}": CaptureLimit("no key") for number in range(53)}
    report = capture_report(["walstream"], limits)
    assert report.publications == ("walstream",)
    assert list(report.limits) == list(limits)[:50]
    assert report.more == 3
