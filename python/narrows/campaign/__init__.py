"""Campaigns: schemes x runs, executed, kept, resumed, measured."""
