"""What makes results begin anew, and what does not."""

from tests.measure.experiments.code import code_behind


def _mentions(text: str, module: str, name: str) -> bool:
    return any(text in code for code in code_behind(f"tests.measure.experiments.{module}", name))


def test_a_result_depends_on_constants_and_functions_of_other_modules() -> None:
    assert _mentions("LAYERS =", "isage_sensors", "run")
    assert _mentions("def break_sensor", "isage_sensors", "run")
    assert _mentions("NOISE =", "isage_sensors", "run")
    # by a module's name, as in streams.hyperplane
    assert _mentions("def hyperplane", "ipdp_hyperplane", "explain")


def test_a_result_depends_on_the_packages_that_explain() -> None:
    assert _mentions("class IncrementalSAGE", "small_tasks", "square")
    # and on others only when they are used
    assert _mentions("class DetectorSettings", "ipdp_elec2", "explain")
    assert not _mentions("class DetectorSettings", "isage_sensors", "run")
    # of these, what is used, and not what stands beside it
    assert _mentions("class DriftSettings", "ipdp_hyperplane", "explain")
    assert _mentions("ADWIN_DEFAULTS =", "ipdp_hyperplane", "explain")
    assert not _mentions("class KafkaSettings", "ipdp_hyperplane", "explain")


def test_a_result_does_not_depend_on_what_is_said_of_it() -> None:
    assert not _mentions("def _sentence", "isage_sensors", "run")
    assert not _mentions("Line(", "isage_sensors", "run")
    assert not _mentions("Change what a sensor reads", "isage_sensors", "run")
