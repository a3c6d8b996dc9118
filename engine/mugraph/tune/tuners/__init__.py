"""Strategies that decide what is measured next."""
