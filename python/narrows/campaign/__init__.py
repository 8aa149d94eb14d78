"""Campaigns: schemes x runs, executed, stored, resumed, measured."""
