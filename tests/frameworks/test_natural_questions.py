"""The reader of Natural Questions in docs/examples/project, on the sample beside it, and the measures of answers."""

import dataclasses
import gzip
import json
import re
import shutil
import sys
import tracemalloc

import pytest

from conftest import EXAMPLES, need

np = pytest.importorskip("numpy")
sys.path.insert(0, str(EXAMPLES / "project"))

import examples as formats  # noqa: E402
import natural_questions  # noqa: E402
import scores  # noqa: E402
import windows  # noqa: E402

SAMPLE = EXAMPLES / "project/sample/natural-questions.jsonl"
SHAPE = windows.WindowShape(length=80, stride=32, question=16, buckets=4096)
# By example: the type, the words of the short answers, and the first words of the long one.
ANSWERS = [
    ("short", ["Ada Lindqvist"], "<P> The lighthouse was built by"),
    ("yes", [], "<P> Walkers may use the bridge"),
    ("no", [], "<P> No mine is in work any more"),
    ("none", [], None),
    ("short", ["Ulva", "Little Sten"], "<P> Below the old market"),
    ("long", [], "<P> Rye flour , water"),
    ("short", ["140"], "<Table> <Tr> <Th> Ferry"),
]


@pytest.fixture
def sample(tmp_path):
    return shutil.copy(SAMPLE, tmp_path / "sample.jsonl")


def opened(path, negatives=1.0, cache=None, shape=SHAPE):
    return natural_questions.open_windows(str(path), cache, shape, negatives)


def words(example, span):
    return " ".join(example.document[span.start : span.end])


def test_answers_of_the_sample_are_right_to_the_word():
    for line, (kind, short, long) in zip(SAMPLE.read_text().splitlines(), ANSWERS, strict=True):
        example = formats.parse(line)
        (answer,) = example.answers
        assert (answer.type, [words(example, span) for span in answer.short]) == (kind, short)
        assert (
            (words(example, answer.long).startswith(long) and answer.long in example.candidates)
            if long
            else not answer.long
        )


def test_windows_of_the_sample_point_at_the_answers(sample):
    found = set()
    for data in opened(sample):
        for index in range(len(data)):
            window, example = data[index], data.examples[data[index]["example"]]
            kind, short, long = ANSWERS[window["example"]]
            told = formats.ANSWER_TYPES[window["type"]]
            place = {name: int(window[name] + window["origin"]) for name in ("start", "end", "long")}
            if told == "short":
                assert words(example, formats.Span(place["start"], place["end"] + 1)) in short
            else:
                assert (window["start"], window["end"]) == (0, 0)
            if window["long"] > 0:
                assert words(example, formats.Span(place["long"], len(example.document))).startswith(long)
                assert window["candidates"][window["long"]]
            assert told == "none" or told == kind or (told, kind) == ("long", "short")
            found.add((int(window["example"]), told))
    assert {(number, kind) for number, (kind, _, _) in enumerate(ANSWERS)} <= found


def test_windows_overlap_and_cover_the_whole_document(sample):
    training, _ = opened(sample)
    long = max(range(len(training.examples)), key=lambda number: len(training.examples[number].document))
    starts = training.rows[training.rows[:, 0] == long, 1].tolist()
    document = training.examples[long].document
    room = SHAPE.room(training.examples[long])
    assert starts == list(range(0, starts[-1] + 1, SHAPE.stride)) and len(starts) > 5
    assert starts[-1] < len(document) <= starts[-1] + room and SHAPE.stride < room
    window = windows.encode(training.examples[long], starts[1], SHAPE)
    shown = document[starts[1] : starts[1] + room]
    assert window["tokens"][-room:].tolist() == [windows.token_of(word, SHAPE.buckets) for word in shown]


def test_windows_without_an_answer_are_thinned_out_the_same_way_each_time(sample):
    def kinds(negatives):
        training, held_out = opened(sample, negatives)
        return [int(training[index]["type"]) for index in range(len(training))], len(held_out)

    (every, held_out), (some, held_out_still), (no, _) = kinds(1.0), kinds(0.5), kinds(0.0)
    assert every.count(0) > some.count(0) > no.count(0) == 0
    assert [kind for kind in every if kind] == [kind for kind in some if kind] == no
    assert held_out == held_out_still and kinds(0.5)[0] == some


def test_the_index_is_made_once_and_again_for_another_file(sample, tmp_path, capfd):
    first, _ = opened(sample, cache=str(tmp_path / "cache"))
    assert f"reading {sample} (7,129 bytes)" in capfd.readouterr().err
    second, _ = opened(sample, cache=str(tmp_path / "cache"))
    assert capfd.readouterr().err == "" and np.array_equal(first.rows, second.rows)
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (tmp_path / "sample.jsonl").write_text("".join(lines[:5]))
    third, _ = opened(sample, cache=str(tmp_path / "cache"))
    assert len(third.examples) == 5 and "reading" in capfd.readouterr().err


def test_a_compressed_file_is_unpacked_once(sample, tmp_path, capfd):
    packed, cache = tmp_path / "packed.jsonl.gz", tmp_path / "cache"
    packed.write_bytes(gzip.compress(SAMPLE.read_bytes()))
    ours, plain = opened(packed, cache=str(cache))[0], opened(sample)[0]
    assert np.array_equal(ours.rows, plain.rows) and ours.examples[5] == plain.examples[5]
    assert capfd.readouterr().err.count("unpacking") == 1
    opened(packed, cache=str(cache))
    assert capfd.readouterr().err == ""
    packed.write_bytes(packed.read_bytes()[:-100])
    (cache / "packed.jsonl").unlink()
    with pytest.raises(natural_questions.InputError, match="packed.jsonl.gz: the compressed file ends too early"):
        opened(packed, cache=str(cache))


def test_a_large_file_is_never_in_memory(tmp_path):
    record = json.loads(SAMPLE.read_text().splitlines()[0])
    record["question_text"] = "why " + "x" * 200_000
    path = tmp_path / "large.jsonl"
    path.write_text((json.dumps(record) + "\n") * 100)
    tracemalloc.start()
    training, _ = opened(path)
    training[len(training) - 1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6 < path.stat().st_size / 4, f"{peak:,} bytes"


def changed(**values):
    return json.dumps({**json.loads(SAMPLE.read_text().splitlines()[1]), **values})


ANNOTATION = {"yes_no_answer": "NONE", "long_answer": {"start_token": 3, "end_token": 9}, "short_answers": []}
BAD = {
    '{"question_text": "wh': "not valid JSON: Unterminated string starting at column 19",
    "[]": "not a JSON object",
    changed(document_text=None): "no document_text",
    changed(question_text=5): "question_text is not of the type str",
    changed(annotations=[]): "annotations is empty",
    changed(
        long_answer_candidates=[{"start_token": 0, "end_token": 9999}]
    ): "tokens 0 to 9999 do not lie in a document of 57",
    changed(
        annotations=[{**ANNOTATION, "yes_no_answer": "MAYBE"}]
    ): 'yes_no_answer is "MAYBE": neither YES, NO nor NONE',
    changed(annotations=[ANNOTATION]): "the long answer, tokens 3 to 9, is not one of long_answer_candidates",
}


@pytest.mark.parametrize("line, why", BAD.items(), ids=[why[:40] for why in BAD.values()])
def test_a_line_that_is_no_example_is_named(sample, line, why):
    with open(sample, "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(natural_questions.InputError) as error:
        opened(sample)
    assert str(error.value).startswith(f"{sample}:8: {why}")


def test_the_program_ends_with_that_one_line(runner, tmp_path):
    need("torch")
    (tmp_path / "bad.jsonl").write_text(SAMPLE.read_text().splitlines()[0] + "\nnonsense\n")
    result = runner.python(EXAMPLES / "project/train.py", "--dataset", "natural-questions", "--data", "bad.jsonl")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("train.py: bad.jsonl:2: not valid JSON: Expecting value")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("text, why", [(None, "No such file"), ("", "nothing to train on")], ids=["absent", "empty"])
def test_no_data(tmp_path, text, why):
    if text is not None:
        (tmp_path / "data.jsonl").write_text(text)
    with pytest.raises(natural_questions.InputError, match=why):
        opened(tmp_path / "data.jsonl")


def test_one_process_without_a_launcher_trains_on_the_sample(runner, sample):
    need("torch")
    result = runner.python(
        EXAMPLES / "project/train.py", "--dataset", "natural-questions", "--data", sample, "--epochs", 1
    )
    assert result.returncode == 0, result.stderr
    assert re.match(r"epoch 0: loss \S+ on 1 rank, exact match ", result.stdout), result.stdout
    assert (runner.folder / "output/checkpoint.pt").stat().st_size > 0
    assert len(list(sample.parent.glob("sample.jsonl.*.npz"))) == 1


def test_of_several_annotators_two_have_to_agree_that_there_is_an_answer():
    found, none = formats.Answer("yes", formats.Span(0, 4)), formats.Answer()
    example = formats.Example(("q",), ("a",) * 9, (formats.Span(0, 4),), (none, found, none, none, none))
    assert windows.accepted(example) == (none,)
    example = dataclasses.replace(example, answers=(none, found, none, found, none))
    assert windows.accepted(example) == (found, found)


LONG = formats.Span(10, 30)
SHORT = formats.Answer("short", LONG, (formats.Span(12, 14), formats.Span(20, 24)))


@pytest.mark.parametrize(
    "predicted, right, measured",
    [
        (formats.Answer("short", LONG, (formats.Span(20, 24),)), SHORT, (1, 1, 1)),
        (formats.Answer("short", LONG, (formats.Span(22, 26),)), SHORT, (0, 0.5, 1)),
        (formats.Answer("short", formats.Span(0, 9), (formats.Span(2, 4),)), SHORT, (0, 0, 0)),
        (formats.Answer("yes", LONG), formats.Answer("yes", LONG), (1, 1, 1)),
        (formats.Answer("yes", LONG), formats.Answer("no", LONG), (0, 0, 1)),
        (formats.Answer("long", LONG), SHORT, (0, 0, 1)),
        (formats.Answer(), formats.Answer(), (1, 1, 1)),
        (formats.Answer(), SHORT, (0, 0, 0)),
    ],
)
def test_measures(predicted, right, measured):
    assert scores.measures(predicted, (right,)) == measured


def test_outputs_that_agree_with_the_targets_are_read_as_the_right_answers(sample):
    """A model that knew everything would have full marks: the way from words to positions and back loses nothing."""
    training, _ = opened(sample)
    best = scores.BestWindows()
    for index in range(len(training)):
        window = training[index]
        outputs = {
            name: np.eye(size)[max(0, window[name])][None]
            for name, size in (
                ("type", len(formats.ANSWER_TYPES)),
                *((name, SHAPE.length) for name in ("start", "end", "long")),
            )
        }
        best.add(outputs, {name: np.array([window[name]]) for name in ("example", "origin")})
    assert best.sums(training.examples).tolist() == [6, 6, 6, 6]
