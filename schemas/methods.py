"""The list of methods: a new one is an entry here, and the module that computes it."""

from typing import Literal, NamedTuple, get_args

Method = Literal["ipfi", "isage", "ipdp", "ishap", "interaction"]

Unit = Literal["loss", "output", "output²"]


class MethodInfo(NamedTuple):
    """Facts about a method that the pipeline needs before it loads the method.

    Attributes
    ----------
    title
        Display name.
    meaning
        What its importance measures, as part of a sentence.
    unit
        The unit of its importance.
    code
        Import string of its class: a :class:`~fluxplain.explain.method.Method`.
    settings
        Import string of the class of its table in ``[explain]``. Its keys are arguments of the
        method's ``configured``.
    needs_label
        Whether an observation needs a label to be explained.
    is_curve
        Whether its answers are curves, of features and pairs; else they become one increment of
        each feature and group.
    is_signed
        Whether its increments are sizes of numbers with a sign, whose mean is published, too.
    has_partners
        Whether each of its answers is about a feature with another one: the point of the answer is
        the place of that partner among the features and groups.
    averages
        Whether each of its outputs is a mean over all inner samples.
    caution
        The part that its detectors use of their share of false alarms, where its increments depend
        on each other in ways that they do not know.
    """

    title: str
    meaning: str
    unit: Unit
    code: str
    settings: str
    needs_label: bool = True
    is_curve: bool = False
    is_signed: bool = False
    has_partners: bool = False
    averages: bool = False
    caution: float = 1.0

    @property
    def has_points(self) -> bool:
        """Whether its answers have points."""
        return self.is_curve or self.has_partners


METHODS: dict[Method, MethodInfo] = {
    "ipfi": MethodInfo(
        "iPFI",
        "loss added by replacing the feature",
        "loss",
        "fluxplain.explain.pfi:PFI",
        "fluxplain.config.explain_settings:PFISettings",
    ),
    "isage": MethodInfo(
        "iSAGE",
        "the feature's share in the loss reduction",
        "loss",
        "fluxplain.explain.sage:SAGE",
        "fluxplain.config.explain_settings:SAGESettings",
        averages=True,
    ),
    "ipdp": MethodInfo(
        "iPDP",
        "how far the output moves with the feature",
        "output",
        "fluxplain.explain.pdp:PDP",
        "fluxplain.config.explain_settings:PDPSettings",
        needs_label=False,
        is_curve=True,
        # the curves of consecutive records have the same grid: with a point beyond a step of the
        # model, all increments are larger for a while
        caution=0.01,
    ),
    "ishap": MethodInfo(
        "iSHAP",
        "how far the feature moves the output from its mean",
        "output",
        "fluxplain.explain.shap:SHAP",
        "fluxplain.config.explain_settings:SHAPSettings",
        needs_label=False,
        is_signed=True,
    ),
    "interaction": MethodInfo(
        "interaction",
        "variance of the output that the feature causes only together with others",
        "output²",
        "fluxplain.explain.interaction:Interaction",
        "fluxplain.config.explain_settings:InteractionSettings",
        needs_label=False,
        has_partners=True,
    ),
}

Watched = Literal[Method, "loss"]
"""What detectors watch: the explanations of a method, or the model's loss."""

METHOD_NAMES: dict[Watched, str] = {
    **{name: info.title for name, info in METHODS.items()},
    "loss": "loss",
}
"""Display names."""

WATCHED: tuple[Watched, ...] = get_args(Watched)


def unit_of(watched: Watched | None) -> Unit:
    """Return the unit of a method's importance, or of the loss."""
    return METHODS[watched].unit if watched in METHODS else "loss"
