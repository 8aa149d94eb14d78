"""Programs as schemes: a trial of one."""
