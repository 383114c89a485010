"""A real browser without a screen: Debian's chromium, driven by selenium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service


@contextmanager
def browser(width: int, *, scripts: bool = True) -> Iterator[webdriver.Chrome]:
    """Open one whose page is so many pixels wide."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    if not scripts:
        setting = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", setting)
    found = webdriver.Chrome(options, Service(driver))
    try:
        found.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        yield found
    finally:
        found.quit()
