"""`narrows hunt`: the path and the cross traffic on which a scheme performs worst."""
