"""Settings: one TOML file plus environment variables, validated as a whole.

Environment variables override the file: ``FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS`` is the key
``kafka.bootstrap_servers``. Each module defines one table, or a few small ones.
"""

from fluxplain.config.alerts import AlertSettings
from fluxplain.config.base import ENV_PREFIX, ConfigError
from fluxplain.config.drift_settings import DriftSettings
from fluxplain.config.kafka import EMBEDDED, ControlSettings, KafkaSettings
from fluxplain.config.load import Caller, check_references, load_config
from fluxplain.config.messages import explain_errors
from fluxplain.config.model_settings import MAX_VERSION, FeatureType, LabelSettings, LabelType
from fluxplain.config.operation import KEY_LENGTH
from fluxplain.config.registry import RegistrySettings
from fluxplain.config.root import Config

__all__ = [
    "EMBEDDED",
    "ENV_PREFIX",
    "KEY_LENGTH",
    "MAX_VERSION",
    "AlertSettings",
    "Caller",
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
