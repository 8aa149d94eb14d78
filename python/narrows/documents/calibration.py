"""results.json of a calibration: the path, its errors, and each scheme on it (`narrows/calibration/1`)."""

from __future__ import annotations

from narrows.documents.data import Count, Integer, Number, Part

FORMAT = "narrows/calibration/1"


class CalibratedPath(Part, frozen=True, kw_only=True):
    """A path that was calibrated."""

    #: The kind of link.
    link: str
    #: The file of the trace that the link follows.
    trace: str | None = None
    rate_bps: Number
    delay_ns: Number
    queue_packets: Number
    queue_bytes: Number
    #: Whether the queue counts packets or bytes.
    queue_unit: str
    loss_ratio: Number
    #: The parameters of the features that it has.
    features: dict[str, dict[str, Number]]
    #: All values in words.
    words: dict[str, str]


class CalibrationErrors(Part, frozen=True, kw_only=True):
    """Mean errors of throughput and 95th percentile of delay."""

    fit: Number | None
    fresh_seeds: Number | None
    #: The error on fresh seeds over the schemes that are on the path.
    on_path: Number | None = None
    #: Mean errors of schemes left out of the fit.
    left_out: Number | None
    #: Mean errors if each scheme has a separate rate.
    own_rates: Number | None
    #: Variation by chance alone: of the table, and of one run of it.
    noise_floor: Number | None
    single_run: Number | None


class FeatureTrial(Part, frozen=True, kw_only=True):
    """A feature that was tried: the error of left-out schemes without and with it."""

    feature: str
    before: Number
    after: Number
    admitted: bool


class Reproduction(Part, frozen=True, kw_only=True):
    """A measured value and the reproduced one, in base units."""

    flow: str
    quantity: str
    measured: Number
    #: The value of each measured run.
    runs: list[Number]
    reproduced: Number | None
    error: Number | None


class CalibratedScheme(Part, frozen=True, kw_only=True):
    """A scheme of the table on the path."""

    name: str
    #: The scheme in the notation of scenarios.
    scheme: str
    error: Number | None
    #: Whether the scheme is on the path: its difference is not far beyond those of the other schemes.
    on_path: bool | None = None
    #: The error on the path that was fitted without it.
    left_out_error: Number | None
    left_out_path: CalibratedPath | None
    #: Whether a path on which the others fit explains it, and the path that suits it best.
    explained: bool | None
    explained_error: Number | None
    explained_path: CalibratedPath | None
    #: The best-fitting rate, as a multiple of the path's.
    own_rate_factor: Number | None
    own_rate_error: Number | None
    values: list[Reproduction]

    @property
    def flows(self) -> dict[str, dict[str, Reproduction]]:
        """The values by flow and quantity."""
        flows: dict[str, dict[str, Reproduction]] = {}
        for value in self.values:
            flows.setdefault(value.flow, {})[value.quantity] = value
        return flows


class Calibration(Part, frozen=True, kw_only=True):
    """The path that reproduces a table of measurements, and its errors."""

    format: str
    table: str
    notes: list[str]
    #: Schemes of the table that are excluded, each with the reason.
    left_out_of_the_table: dict[str, str]
    #: The metric of each quantity.
    metrics: dict[str, str]
    flows: Count
    interval: str
    duration: str
    seed: Integer
    evaluations: Count
    budget_used_up: bool
    path: CalibratedPath
    errors: CalibrationErrors
    #: The cost of each kind of link.
    links: dict[str, Number]
    features: list[FeatureTrial]
    #: Why features were not tried.
    features_not_tried: str | None
    schemes: list[CalibratedScheme]
