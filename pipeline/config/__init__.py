"""Settings: one TOML file plus environment variables, validated as a whole.

An environment variable overrides the file: ``FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS`` is the key
``kafka.bootstrap_servers``. There is one module for each table, or for a few small ones.
"""

from pipeline.config.alerts import AlertSettings
from pipeline.config.base import ENV_PREFIX, ConfigError
from pipeline.config.drift import DriftSettings
from pipeline.config.kafka import EMBEDDED, ControlSettings, KafkaSettings
from pipeline.config.load import Asker, check_references, load_config
from pipeline.config.messages import explain_errors
from pipeline.config.model import MAX_VERSION, FeatureType, LabelSettings, LabelType
from pipeline.config.operation import KEY_LENGTH
from pipeline.config.registry import RegistrySettings
from pipeline.config.root import Config

__all__ = [
    "EMBEDDED",
    "ENV_PREFIX",
    "KEY_LENGTH",
    "MAX_VERSION",
    "AlertSettings",
    "Asker",
    "Config",
    "ConfigError",
    "ControlSettings",
    "DriftSettings",
    "FeatureType",
    "KafkaSettings",
    "LabelSettings",
    "LabelType",
    "RegistrySettings",
    "check_references",
    "explain_errors",
    "load_config",
]
