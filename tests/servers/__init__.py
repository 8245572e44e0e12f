"""Real servers for the tests: private ones on free ports, which tests may stop, freeze and kill."""
