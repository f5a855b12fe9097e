"""All tables of the settings, and values derived from several of them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from fluxplain.config.alert_settings import AlertSettings
from fluxplain.config.base import ENV_PREFIX, Name
from fluxplain.config.checkpoint_settings import CheckpointSettings
from fluxplain.config.control_settings import ControlSettings
from fluxplain.config.dashboard_settings import DashboardSettings
from fluxplain.config.drift_settings import DriftSettings
from fluxplain.config.explain_settings import ExplainSettings
from fluxplain.config.health_settings import HealthSettings
from fluxplain.config.kafka_settings import KafkaSettings
from fluxplain.config.label_settings import LabelSettings
from fluxplain.config.missing_settings import MissingSettings
from fluxplain.config.model_settings import ModelSettings
from fluxplain.config.reasons_settings import ReasonsSettings
from fluxplain.config.registry_settings import RegistrySettings
from fluxplain.config.replica import Replica, Role
from fluxplain.config.stream_settings import Own, Partition
from fluxplain.config.topic_settings import TopicSettings
from fluxplain.explain.grids import check_pairs
from fluxplain.explain.players import Players
from fluxplain.schemas.methods import METHODS, Method

FeatureType = Literal["numeric", "categorical"]


class Tables(BaseSettings):
    """All settings of a pipeline."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
        hide_input_in_errors=True,  # the input may hold a password
    )

    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 42
    """Seed of all random numbers."""
    features: Annotated[dict[Name, FeatureType], Field(min_length=1)]
    """Feature → `"numeric"` (finite numbers) or `"categorical"` (strings, integers, booleans)."""
    missing: MissingSettings = MissingSettings()
    label: LabelSettings = LabelSettings()
    model: ModelSettings
    explain: ExplainSettings = ExplainSettings()
    drift: DriftSettings = DriftSettings()
    reasons: ReasonsSettings = ReasonsSettings()
    control: ControlSettings = ControlSettings()
    streams: dict[Partition, Own] = {}
    """Partition → its stream's own settings in the tables `missing`, `label`, `model`, `explain`,
    `drift` and `reasons`, such as `[streams.3.model.params]`. See
    [Many streams](streams.md#many-streams)."""
    kafka: KafkaSettings = KafkaSettings()
    topics: TopicSettings = TopicSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    health: HealthSettings = HealthSettings()
    registry: RegistrySettings = RegistrySettings()
    alerts: AlertSettings = AlertSettings()
    dashboard: DashboardSettings = DashboardSettings()

    @classmethod
    def settings_customise_sources(  # type: ignore[override]
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        **_: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment override the file."""
        return env_settings, init_settings

    @cached_property
    def pairs(self) -> dict[str, tuple[str, str]]:
        """The pairs of features that iPDP explains: name → features."""
        pairs = self.explain.of("ipdp").pairs
        return check_pairs(pairs) if pairs else {}

    @cached_property
    def players(self) -> Players:
        """The players of iPFI and iSAGE: features, and groups at their first feature's position."""
        groups = self.explain.groups
        group_of = {feature: group for group, members in groups.items() for feature in members}
        names = dict.fromkeys(group_of.get(feature, feature) for feature in self.features)
        return Players([{name: groups[name]} if name in groups else name for name in names])

    @cached_property
    def explained(self) -> list[str]:
        """Everything that is explained: players, features that only iPDP explains, and pairs."""
        curves = {METHODS[method].is_curve for method in self.explain.methods}
        players = self.players.names if False in curves else ()
        features = self.features if True in curves else ()
        names = dict.fromkeys([*players, *features, *self.pairs])
        return [name for name in names if self.methods_of(name)]

    @property
    def members(self) -> dict[str, Sequence[str]]:
        """Explained name → its features."""
        groups, pairs = self.explain.groups, self.pairs
        return {name: groups.get(name) or pairs.get(name) or [name] for name in self.explained}

    @property
    def are_categorical(self) -> dict[str, tuple[bool, ...]]:
        """Explained name → whether it is categorical, or each feature of a pair is."""
        return {
            name: tuple(each in self.categorical for each in self.pairs.get(name, (name,)))
            for name in self.explained
        }

    def methods_of(self, name: str) -> list[Method]:
        """Return the methods that explain a feature, a group or a pair."""
        is_explained = {
            False: name in self.players.names,
            True: name in self.features or name in self.pairs,
        }
        wanted = self.explain.features.get(name, self.explain.methods)
        methods = [method for method in self.explain.methods if method in wanted]
        return [method for method in methods if is_explained[METHODS[method].is_curve]]

    @cached_property
    def categorical(self) -> list[str]:
        """The categorical features."""
        return [name for name, kind in self.features.items() if kind == "categorical"]

    @property
    def is_joined(self) -> bool:
        """Whether the model role's input is joined from several topics."""
        return self.label.topic or self.control.topic

    @property
    def source(self) -> str:
        """The topic whose partitions are the streams, without the prefix."""
        return "observations" if self.is_joined else "features"

    def topic(self, name: str) -> str:
        """Return a topic's full name."""
        return self.topics.prefix + name

    def inputs(self, role: Role) -> tuple[str, ...]:
        """Return the topics that a role reads, without the prefix."""
        late = {"labels": self.label.topic, "control": self.control.topic}
        topics: dict[Role, tuple[str, ...]] = {
            "join": ("features", *(name for name, is_there in late.items() if is_there)),
            "model": (self.source,),
            "explainer": ("evaluations",),
            "drift": ("explanations",),
        }
        return topics[role]

    def replicas(self, role: Role | None = None) -> list[Replica]:
        """Return the replicas of a role, or of the pipeline, in the order of the data flow."""
        shards = self.model.shards
        join = [Replica("join")] if self.is_joined else []
        model = [Replica("model", shard, shards) for shard in range(shards)]
        replicas = [*join, *model, Replica("explainer"), Replica("drift")]
        return [replica for replica in replicas if role in {None, replica.role}]

    def group(self, replica: Replica | str) -> str:
        """Return the consumer group of a role, a replica, or another reader."""
        return f"{self.topics.prefix}{replica}"

    def group_instance_id(self, replica: Replica) -> str | None:
        """Return a worker's static member id, if configured."""
        name = self.kafka.group_instance_id
        return None if name is None else f"{name}-{replica}"

    def on_broker(self, bootstrap_servers: str) -> Self:
        """Return these settings for another broker."""
        kafka = self.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
        return self.model_copy(update={"kafka": kafka})
