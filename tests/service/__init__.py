"""Tests of the service; a package, because other folders of tests have modules of the same names."""
