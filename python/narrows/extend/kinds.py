"""The kinds of entries that a crate may add, with their places in the sources and conformance kits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of entry. Paths are relative to the root of the sources; `{name}` is the name of the entry."""

    #: The crate of Narrows that has the registry.
    crate: str
    #: Its folder.
    folder: str
    #: The file with the list of the registry, and the text behind which the entry's name is added.
    registry: str
    behind: str
    #: The folder of the entries' files.
    into: str
    #: Rust that runs the conformance kit on the registered entry, and checks its name.
    check: str
    #: The name for people.
    what: str
    #: The name of the example that `narrows extend new` adapts, and of its entry.
    example: str
    entry: str

    @property
    def rust_name(self) -> str:
        """The crate's name in Rust."""
        return self.crate.replace("-", "_")


_NAMED = 'assert_eq!({at}.name, "{{name}}", "the name of the entry is that of its file");'

#: By the words of `[package.metadata.narrows]`.
KINDS = {
    "queue": Kind(
        "narrows-net", "core/net", "core/net/src/queues.rs", "dyn Queue<P>, QueueEffects:",
        "core/net/src/queues",
        "use narrows_net::queues::{name} as own;"
        + _NAMED.format(at="own::ENTRY")
        + "let _: narrows_net::QueueEffects = own::EFFECTS;"
        "narrows_net::testing::check_queue_entry(&own::ENTRY, own::build);",
        "queue", "own-queue", "randomdrop",
    ),
    "link": Kind(
        "narrows-net", "core/net", "core/net/src/links.rs", "dyn Element<P>, LinkEffects:",
        "core/net/src/links",
        "use narrows_net::links::{name} as own;"
        + _NAMED.format(at="own::ENTRY")
        + "narrows_net::testing::check_link_entry(&own::ENTRY, own::EFFECTS, own::build);",
        "link element", "own-link", "biterrors",
    ),
    "rate": Kind(
        "narrows-net", "core/net", "core/net/src/rates.rs", "dyn RateServer:",
        "core/net/src/rates",
        "use narrows_net::rates::{name} as own;"
        + _NAMED.format(at="own::ENTRY")
        + "narrows_net::testing::check_rate_entry(&own::ENTRY, own::build);",
        "rate", "own-rate", "ramp",
    ),
    "scheme": Kind(
        "narrows-cc", "core/cc", "core/cc/src/schemes.rs", "\nschemes! {",
        "core/cc/src/schemes",
        "use narrows_cc::{{schemes, testing}}; let own = &schemes::{name}::SCHEME;"
        + _NAMED.format(at="own")
        + "for seed in 0..20 {{ testing::check(own, seed, 2_000); }}"
        "let page = schemes::page(own.name).unwrap();"
        "testing::check_page(own.name, &page, own.params);",
        "scheme", "own-scheme", "aimd",
    ),
    "traffic": Kind(
        "narrows-traffic", "core/traffic", "core/traffic/src/kinds.rs", "\ntraffic!(",
        "core/traffic/src/kinds",
        "let own = &narrows_traffic::kinds::{name}::TRAFFIC;" + _NAMED.format(at="own.entry"),
        "kind of traffic", "own-traffic", "imix",
    ),
    "metric": Kind(
        "narrows-record", "core/record", "core/record/src/metrics/mod.rs", "\nmetrics!(",
        "core/record/src/metrics",
        "let names: Vec<_> = narrows_record::metrics::metrics().map(|metric| metric.name).collect();"
        'let own = names.iter().filter(|own| own.starts_with("{name}"));'
        "let mut count = 0;"
        "for own in own {{"
        " count += 1;"
        ' assert_eq!(names.iter().filter(|name| *name == own).count(), 1, "{{own}} exists already");'
        "}}"
        'assert!(count > 0, "the names of the metrics of {name}.rs begin with {name}");',
        "metric", "own-metric", "delay_variation",
    ),
}  # fmt: skip
