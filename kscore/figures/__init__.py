"""Pictures and tables: one look, the charts of the collection, and the filter to play with; nothing is computed here.

    >>> from kscore import figures
    >>> fig, ax = figures.panels()
    >>> figures.forest(rows, ax)
"""

from kscore.figures.charts import (
    forest,
    forest_panels,
    heat,
    learning,
    learning_panels,
    live,
    live_panel,
    survival,
    survival_panels,
)
from kscore.figures.films import filter_film
from kscore.figures.overviews import forest_grid, multiverse
from kscore.figures.sliders import explore
from kscore.figures.style import (
    BLUE,
    BROWN,
    CONTROL_METHODS,
    EPISODE_METHODS,
    FAIR_METHODS,
    GREEN,
    GREY,
    GROUP_METHODS,
    INK,
    LOOKS,
    METHODS,
    ORANGE,
    PURPLE,
    RED,
    RELATIVE_METHODS,
    SKY,
    SPOKEN,
    TEAL,
    WRAPPER_METHODS,
    caption,
    label,
    method,
    panels,
    show,
    use_style,
)
from kscore.figures.tables import ended, factors, least_factor, pairing, run_count, sentences, table, verdicts

__all__ = ["BLUE", "BROWN", "CONTROL_METHODS", "EPISODE_METHODS", "FAIR_METHODS", "GREEN", "GREY", "GROUP_METHODS",
           "INK", "LOOKS", "METHODS", "ORANGE", "PURPLE", "RED", "RELATIVE_METHODS", "SKY", "SPOKEN", "TEAL",
           "WRAPPER_METHODS", "caption", "ended", "explore", "factors", "filter_film", "forest", "forest_grid",
           "forest_panels", "heat", "label", "learning", "learning_panels", "least_factor", "live", "live_panel",
           "method", "multiverse", "pairing", "panels", "run_count", "sentences", "show", "survival",
           "survival_panels", "table", "use_style", "verdicts"]
