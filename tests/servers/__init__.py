"""Private servers on free ports for the tests, which may stop, freeze and kill them."""
