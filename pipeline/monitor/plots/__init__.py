"""Figures of what is published, and of explanations by hand: for print, notebooks and a report.

Nothing is loaded before one of the names is asked for: the plotting library is slow to import.
"""

from typing import TYPE_CHECKING

from pipeline.lazy import lazy

if TYPE_CHECKING:
    from pipeline.monitor.plots.curves import curves_figure
    from pipeline.monitor.plots.importance import importance_figure, plot_importances
    from pipeline.monitor.plots.notebook import draw
    from pipeline.monitor.plots.report import report_page
    from pipeline.monitor.plots.saving import save
    from pipeline.monitor.plots.stories import story_figure
else:
    __getattr__, __dir__ = lazy(
        __name__,
        curves=["curves_figure"],
        importance=["importance_figure", "plot_importances"],
        notebook=["draw"],
        report=["report_page"],
        saving=["save"],
        stories=["story_figure"],
    )

__all__ = [
    "curves_figure",
    "draw",
    "importance_figure",
    "plot_importances",
    "report_page",
    "save",
    "story_figure",
]
