"""Programs as schemes: a trial run of one."""
