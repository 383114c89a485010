"""What the tests share: servers, programs under test, loads, and oracles."""
