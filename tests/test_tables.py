from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handful.bench.after_2020 import AFTER_2020, after_2020_sections
from handful.bench.grid import Cell, whole_of
from handful.bench.results import CellResult, result_line
from handful.bench.sections import rank_correlation, render_tables, sections_of
from handful.bench.tables import LAYOUTS, MAIN, Column, make_tables, paper_figures
from handful.cli import main
from handful.errors import SettingError
from handful.utils.files import read_json
from handful.utils.paths import resource


def measured(
    preset: str, data: str = "reuters", shot: int = 1, accuracy: float = 0.5, seed: int = 0, **more: object
) -> CellResult:
    options = more.pop("options", {})
    cell = Cell(data, shot, str(more.get("vectors", "wordllama")), preset, seed, tuple(sorted(options.items())))
    blank = {
        "ci95": 0.01,
        "episodes": 1000,
        "queries": 19,
        "epochs": 30,
        "seconds": 9.0,
        "resumed_from_epoch": 0,
        "peak_memory_mb": 1.0,
        "auroc": None,
        "signal_variation": {},
    }
    pair = {"reference": None, "over_reference": None, "over_reference_ci95": None}
    rest = {**blank, **pair, "settings": cell.portable_settings, "versions": {}, "vectors": cell.vectors, **more}
    return CellResult(data=data, shot=shot, preset=preset, seed=seed, options=options, accuracy=accuracy, **rest)


def as_measured(shift: float = 0.0, data: tuple[str, ...] = ("reuters", "huffpost")) -> list[CellResult]:
    """Results at the paper's own figures, moved by some points."""
    return [
        measured(preset, place, shot, (figure.accuracy + shift) / 100)
        for (preset, place, shot, trained), figure in paper_figures("fasttext").items()
        if preset in MAIN and place in data and not trained
    ]


def rows_of(text: str) -> dict[str, list[str]]:
    """The rows of the first table of a Markdown text, by their first cell."""
    lines = [line.strip("| \n").split(" | ") for line in text.split("\n\n")[1].splitlines()]
    return {line[0]: [cell.strip() for cell in line[1:]] for line in lines}


def test_the_papers_figures_by_preset() -> None:
    figures = paper_figures("fasttext")
    assert figures["our", "reuters", 1, False].accuracy == pytest.approx(81.81, abs=0.1)
    assert figures["our-without-bilstm", "fewrel", 5, False].accuracy == 82.90
    assert figures["our", "amazon", 5, True].deviation == 0.56
    assert figures["lstm-induct", "rcv1", 1, False].deviation is None
    assert paper_figures("bert")["p-maml", "huffpost", 5, False].accuracy == 51.3
    assert len(figures) + len(paper_figures("bert")) == 366


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_row_of_a_table_has_a_figure_of_the_paper(name: str) -> None:
    [table] = make_tables([], name)
    assert table.vectors == ""
    for preset in table.presets:
        assert any(table.entry(preset, column).paper for column in table.columns), preset
    assert "nothing measured" in render_tables([table])


def test_a_cell_shows_measured_paper_and_difference() -> None:
    results = [measured("our", seed=seed, accuracy=accuracy) for seed, accuracy in enumerate((0.80, 0.84))]
    results += [measured("avg-rr"), measured("our", seed=1, accuracy=0.82)]  # the last line of a seed counts
    rows = rows_of(render_tables(make_tables(results, "main")))
    place = rows["method"].index("reuters 1-shot")
    paper = paper_figures("fasttext")["our", "reuters", 1, False].accuracy
    assert rows["our"][place] == f"81.0 ± 0.7, σ 1.4 ({paper:.1f}, {81 - paper:+.1f})"
    assert rows["avg-rr"][place].startswith("50.0 ± 1.0 (63.4, ")  # one seed: no deviation over seeds
    assert rows["cnn-rr"][place] == "(71.4)"


def test_averages_are_over_the_sets_measured_for_both_sides() -> None:
    results = as_measured(shift=2)
    rows = rows_of(render_tables(make_tables(results, "main")))
    assert rows["method"][-2:] == ["Average 1-shot (2 sets)", "Average 5-shot (2 sets)"]
    assert all(row[-1].endswith("+2.0)") for row in rows.values() if row[-1][0].isdigit())
    without = [result for result in results if (result.preset, result.data, result.shot) != ("our", "huffpost", 1)]
    assert rows_of(render_tables(make_tables(without, "main")))["our"][-2].startswith("(")  # not measured on both
    complete = rows_of(render_tables(make_tables([], "main")))
    assert [float(complete["our"][place].strip("()")) for place in (-2, -1)] == pytest.approx([60.1, 78.0], abs=0.11)


def test_headline_gaps_are_the_papers() -> None:
    [table] = make_tables(as_measured(), "main")
    [section] = [section for section in sections_of(table) if section.title.startswith("Headline")]
    gaps = {row[0]: row[1:] for row in section.rows}
    assert gaps["1-shot, over cnn-proto"][0] == "+20.1 (6 sets)"
    assert gaps["1-shot, over the baseline that is best on average"][0] == "+7.5 (6 sets)"  # what the paper's text says
    for paper, same, here in gaps.values():
        assert paper
        assert same == here  # measured at the paper's own figures
    assert section.notes == []


def test_the_order_of_methods_is_compared() -> None:
    results = as_measured()
    [table] = make_tables(results, "main")
    assert {row[1] for row in sections_of(table)[-1].rows} == {"1.00"}
    turned = [replace(result, accuracy=1 - result.accuracy) for result in results]
    assert {tuple(row[1:]) for row in sections_of(make_tables(turned, "main")[0])[-1].rows} == {("-1.00", "13")}
    assert rank_correlation([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)


def test_the_order_of_a_few_methods_is_not_compared() -> None:
    """Three methods are in the paper's order once in six times by chance."""
    few, many = (
        render_tables(make_tables([result for result in as_measured() if result.preset in presets], "main"))
        for presets in (MAIN[-5:], MAIN[-6:])
    )
    assert "Spearman" not in few
    assert "Spearman" in many


def test_the_method_as_in_the_paper_is_next_to_ours_and_says_how_much_t_varies() -> None:
    results = [
        measured("our", accuracy=0.84),
        measured("our-paper", accuracy=0.80, signal_variation={"t": 0.031}),
        measured("our-paper", seed=1, accuracy=0.81, signal_variation={"t": 0.042}),
    ]
    tables = make_tables(results)
    assert [table.name for table in tables] == ["main", "to_the_letter"]
    text = render_tables(tables[1:])
    rows = rows_of(text)
    place = rows["method"].index("reuters 1-shot")
    assert set(rows) == {"method", "---", "our", "our-paper"}
    assert rows["our-paper"][place] == "80.5 ± 0.7, σ 0.7 (81.8, -1.3)"
    assert "our-paper: t deviates by 0.031 to 0.042 of its mean." in text
    assert "Spearman" not in text


def test_gains_are_paired_and_stand_beside_the_papers() -> None:
    pair = {"reference": "idf-rr", "over_reference": 0.12, "over_reference_ci95": 0.006}
    text = render_tables(make_tables([measured("our", **pair), measured("our", seed=1, **pair)], "main"))
    assert "Gain over idf-rr" in text
    assert "| our | +12.0 ± 0.4 (+12.7) |" in text  # 0.6 / √2


@pytest.mark.parametrize("part", ["amazon-17", "fewrel-partial"])
def test_a_part_stands_beside_the_figure_of_its_whole_and_says_so(part: str) -> None:
    text = render_tables(make_tables([measured("our", part, accuracy=0.6)], "main"))
    rows = rows_of(text)
    figure = paper_figures("fasttext")["our", whole_of(part), 1, False].accuracy
    assert rows["our"][rows["method"].index(f"{part} 1-shot")].endswith(f"({figure:.1f}, {60 - figure:+.1f})")
    assert f"{whole_of(part)} 1-shot" not in rows["method"]
    assert f"\n{part}: " in text
    both = make_tables([measured("our", part), measured("our", whole_of(part))], "main")[0]
    assert {part, whole_of(part)} <= {column.data for column in both.columns}
    assert [column.data for column in both.averaged(1)] == [whole_of(part)]


def test_other_vectors_and_options_have_tables_of_their_own() -> None:
    results = [measured("our"), measured("our", vectors="minilm"), measured("our", options={"distance": "cosine"})]
    assert [(table.vectors, table.options) for table in make_tables(results, "main")] == [
        ("minilm", ()),
        ("wordllama", ()),
        ("wordllama", (("distance", "cosine"),)),
    ]
    bert = make_tables([*results, measured("our", "huffpost", vectors="contextual:minilm")], "bert")
    assert [table.vectors for table in bert] == ["contextual:minilm"]
    assert bert[0].entry("our", Column("huffpost", 1)).paper.accuracy == 42.12


def test_a_shorter_protocol_stands_in_the_same_table_with_a_note() -> None:
    short = {"epochs": 3, "test_episodes": 50}
    [table] = make_tables([measured("our"), measured("cnn-rr", options=short), measured("our", options=short)], "main")
    column = Column("reuters", 1)
    assert table.entry("our", column).mark == ""  # the fuller protocol is there
    assert table.entry("cnn-rr", column).mark == " [1]"
    [accuracies, *_] = sections_of(table)
    assert "[1] epochs 3, test_episodes 50." in accuracies.notes
    assert any(" [1] (" in cell for row in accuracies.rows for cell in row if row[0] == "cnn-rr")


def test_of_two_shorter_protocols_the_longer_stands_in_the_table() -> None:
    short, longer = ({"epochs": epochs, "test_episodes": 50} for epochs in (3, 20))
    for order in ((short, longer), (longer, short)):
        [table] = make_tables([measured("our", options=options) for options in order], "main")
        assert dict(table.marks) == {tuple(sorted(longer.items())): " [1]"}


def test_an_option_that_a_protocol_leaves_alone_is_not_short() -> None:
    trained, short = {"patience": 5, "test_episodes": 50}, {"epochs": 3, "test_episodes": 50}
    [table] = make_tables([measured("our", options=options) for options in (short, trained)], "main")
    assert dict(table.marks) == {tuple(sorted(trained.items())): " [1]"}


def test_notes_of_curves_change_no_table() -> None:
    [table] = make_tables([measured("our", options={"curve_episodes": 50})], "main")
    assert (table.options, table.entry("our", Column("reuters", 1)).mark) == ((), "")


def test_fixed_and_trained_vectors_stand_side_by_side() -> None:
    results = [measured("our", shot=5, accuracy=0.95), measured("our", shot=5, accuracy=0.94, options={"train_vectors": True})]
    [table] = make_tables(results, "finetuned_embeddings")
    assert [round(table.entry("our", Column("reuters", 5, trained)).accuracy) for trained in (False, True)] == [95, 94]
    assert [table.name for table in make_tables(results)] == ["main", "finetuned_embeddings"]


def test_only_tables_with_a_line_of_their_own_are_printed() -> None:
    assert [table.name for table in make_tables([measured("our"), measured("idf-rr")])] == ["main"]
    assert [table.name for table in make_tables([measured("our-lr"), measured("our-without-s")])] == ["ablation", "rr_vs_lr"]
    assert [table.name for table in make_tables([])] == ["main"]


def test_own_data_has_columns_without_a_paper() -> None:
    rows = rows_of(render_tables(make_tables([measured("our", "demo", 3), measured("idf-rr", "demo", 3)], "main")))
    assert rows["method"] == ["demo 3-shot"]
    assert set(rows) == {"method", "---", "idf-rr", "our"}


def test_formats(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("".join(map(result_line, as_measured(1))))

    def table(*options: str) -> Result:
        return CliRunner().invoke(main, ["table", str(path), *options])

    rows = list(csv.DictReader(io.StringIO(table("--format", "csv").stdout)))
    [row] = [row for row in rows if (row["method"], row["data"], row["shot"]) == ("our", "reuters", "5")]
    assert (row["paper"], row["difference"], row["seeds"], row["ci95"]) == ("96.00", "1.00", "1", "1.00")
    latex = table("--format", "latex", "--table", "main").stdout
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    assert r"$\pm$" in latex
    assert "±" not in latex
    assert "**Main results: wordllama**" in table().stdout
    for wrong, sentence in (("--format=html", "no format 'html'"), ("--table=first", "no table 'first'")):
        result = table(wrong)
        assert (result.exit_code, sentence in result.stderr) == (2, True)
    with pytest.raises(SettingError, match="main, ablation"):
        make_tables([], "first")


def test_results_that_are_missing_are_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["table", str(tmp_path / "nowhere.jsonl")])
    assert (result.exit_code, "nowhere.jsonl" in result.stderr) == (2, True)


# After 2020


def sentence(preset: str, accuracy: float, **more: object) -> CellResult:
    return measured(preset, "huffpost", accuracy=accuracy, vectors="sentence:bge-small", **more)


def test_later_methods_stand_next_to_published_figures_with_their_sources() -> None:
    names = {"class_names": True}
    results = [
        measured("our", "huffpost", accuracy=0.43),
        sentence("sentence-nn", 0.4),
        sentence("sentence-nn", 0.42, seed=1),
        sentence("sentence-rr", 0.6, options=names),
        sentence("sentence-soft-kmeans", 0.5),
        sentence("sentence-proto", 0.3, options={"unbalanced": True}),
        sentence("sentence-lda", 0.45, options={"none_share": 0.3}, auroc=0.71),
    ]
    main_part, unbalanced, strange = after_2020_sections(results)
    assert [row[0] for row in main_part.rows] == ["our", "sentence-nn", "sentence-rr", "sentence-soft-kmeans", "our", "TART"]
    marks = {row[0]: row[2:5] for row in main_part.rows}
    assert marks["sentence-nn"] == ["no", "no", "41.0 ± 0.7, σ 1.4"]
    assert marks["sentence-rr"] == ["no", "yes", "60.0 ± 1.0"]
    assert marks["sentence-soft-kmeans"] == ["yes (transductive)", "no", "50.0 ± 1.0"]  # which its preset says
    assert marks["TART"] == ["no", "no", "46.9"]
    assert all(row[-1] for row in main_part.rows)  # the source
    assert any("20 Newsgroups and Amazon" in note for note in main_part.notes)
    assert [row[0] for row in unbalanced.rows] == ["sentence-proto"]
    assert strange.rows[0][4] == "45.0 ± 1.0; 0.710"


def test_the_later_table_is_printed_if_there_is_something_for_it(tmp_path: Path) -> None:
    assert after_2020_sections([measured("our", "huffpost"), measured("cnn-rr", "huffpost")]) == []
    path = tmp_path / "results.jsonl"
    path.write_text(result_line(sentence("sentence-nn", 0.4)))
    printed = CliRunner().invoke(main, ["table", str(path)]).stdout
    assert printed.startswith("**After 2020**")
    assert "nothing measured" not in printed
    asked = CliRunner().invoke(main, ["table", str(path), "--table", AFTER_2020, "--format", "csv"]).stdout
    assert [row["method"] for row in csv.DictReader(io.StringIO(asked))] == ["sentence-nn", "our", "TART"]


def test_the_published_figures_are_on_the_classes_of_the_paper() -> None:
    """Only these data sets are in the table: see the notes below it."""
    for figure in read_json(resource("after_2020.json"))["figures"]:
        assert set(figure["accuracy"]) <= {"huffpost 1-shot", "huffpost 5-shot", "reuters 1-shot", "reuters 5-shot"}
        assert figure["source"]
