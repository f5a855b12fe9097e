"""Figures of published results and of explainers in a notebook, for print and for reports.

Modules are imported when one of their names is first used, because matplotlib is slow to import.
"""

from typing import TYPE_CHECKING

from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.monitor.figures.change_figure import story_figure
    from fluxplain.monitor.figures.effect_figures import curves_figure
    from fluxplain.monitor.figures.importance_over_time import importance_figure
    from fluxplain.monitor.figures.notebook import draw
    from fluxplain.monitor.figures.report import report_page
    from fluxplain.monitor.figures.saving import save
else:
    __getattr__, __dir__ = lazy(
        __name__,
        change_figure=["story_figure"],
        effect_figures=["curves_figure"],
        importance_over_time=["importance_figure"],
        notebook=["draw"],
        report=["report_page"],
        saving=["save"],
    )

__all__ = ["curves_figure", "draw", "importance_figure", "report_page", "save", "story_figure"]
