"""The configuration as one value: a section for each area, in the order of the file.

The keys of a section are in `sections/`, each with its default, check and description. `config` reads the
values from a file and the environment. The commented `webdepot.toml` that `webdepot init` writes and
`docs/reference/configuration.md` are generated from the descriptions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot.config.sections.harvest import (
    ContainerConfig,
    HarvestConfig,
    QualityConfig,
    ReviewConfig,
    ScheduleConfig,
)
from webdepot.config.sections.machines import ClusterConfig, EngineConfig, JobsConfig, WorkConfig
from webdepot.config.sections.portal import ArchiveConfig, OidcConfig, StatisticsConfig, WebConfig
from webdepot.config.sections.selection import DiscoveryConfig, MailConfig, SelectionConfig
from webdepot.config.sections.storage import DatabaseConfig, DepotConfig, ExchangeConfig, IndexConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    home: Path
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    database: DatabaseConfig = field(default_factory=DatabaseConfig)
    harvest: HarvestConfig = field(default_factory=HarvestConfig)
    container: ContainerConfig = field(default_factory=ContainerConfig)
    quality: QualityConfig = field(default_factory=QualityConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    jobs: JobsConfig = field(default_factory=JobsConfig)
    review: ReviewConfig = field(default_factory=ReviewConfig)
    depot: DepotConfig = field(default_factory=DepotConfig)
    exchange: ExchangeConfig = field(default_factory=ExchangeConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    work: WorkConfig = field(default_factory=WorkConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    web: WebConfig = field(default_factory=WebConfig)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    oidc: OidcConfig = field(default_factory=OidcConfig)
    discovery: DiscoveryConfig = field(default_factory=DiscoveryConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    mail: MailConfig = field(default_factory=MailConfig)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables [profiles.NAME] as written; `harvest.profile` parses them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The source of each key that is not a default: `harvest.delay_s` -> `webdepot.toml` or a variable name.
    """
