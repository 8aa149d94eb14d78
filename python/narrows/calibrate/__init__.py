"""An emulated path that reproduces measurements: `narrows calibrate`.

table      measured values: a CSV file, or a campaign
mapping    what the names in a table are here
paths      the parameters of a path, their ranges, and the scenario that they make
simulate   what schemes do on a path, in memory, and every result kept on disk
targets    how far that is from the table
surrogate  Gaussian processes of each scheme's results over the parameters
search     which path to simulate next
fit        the whole: search, features, leaving one out, fresh seeds
output     scenario, tables and results.json
figure     measured and reproduced points
"""
