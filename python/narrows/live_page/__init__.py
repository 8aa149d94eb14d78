"""The page of `narrows run --live-page`: runs under way in a browser of this machine."""
