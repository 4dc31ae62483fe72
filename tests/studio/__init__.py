"""Tests of the studio's page."""
