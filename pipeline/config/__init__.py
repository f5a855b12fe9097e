"""Settings: one TOML file plus environment variables, validated as a whole.

Environment variables override the file: ``FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS`` is the key
``kafka.bootstrap_servers``. Each module named ``*_settings`` defines one table.
"""

from fluxplain.config.alert_settings import AlertSettings
from fluxplain.config.base import ENV_PREFIX, ConfigError
from fluxplain.config.checkpoint_settings import KEY_LENGTH
from fluxplain.config.control_settings import ControlSettings
from fluxplain.config.drift_settings import DriftSettings
from fluxplain.config.kafka_settings import EMBEDDED, KafkaSettings
from fluxplain.config.label_settings import LabelSettings, LabelType
from fluxplain.config.load import Caller, check_references, load_config
from fluxplain.config.messages import explain_errors
from fluxplain.config.model_settings import MAX_VERSION
from fluxplain.config.registry_settings import RegistrySettings
from fluxplain.config.root import Config
from fluxplain.config.tables import FeatureType

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
