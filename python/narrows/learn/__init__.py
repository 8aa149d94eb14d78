"""Trainings of learned schemes in the simulator: recipes, folders of trainings, model cards and scores."""
