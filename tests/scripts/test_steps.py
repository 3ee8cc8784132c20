"""What the scripts say while they work, and at their end."""


def test_a_command_that_fails_shows_the_end_of_its_output_and_where_all_of_it_is(shell):
    done = shell("quietly demo sh -c 'seq 100; exit 3'")
    assert done.returncode == 1
    assert "\n100\n" in done.stderr and "\n50\n" not in done.stderr
    assert "demo.log" in done.stderr


def test_the_last_lines_name_what_failed_and_how_to_run_it_alone(shell):
    done = shell("""
        mkdir -p "$builds/release/Testing/Temporary"
        echo 12:cli.faults >"$builds/release/Testing/Temporary/LastTestsFailed.log"
        note_failures release
        conclude""")
    assert done.returncode == 1
    assert "failed: cli.faults" in done.stderr
    assert r"release -R '^cli\.faults$' --output-on-failure" in done.stderr


REPORT = """
    mkdir -p "$builds/release/Testing/Temporary"
    printf '%s\\n' 'SKIPPED [2] tests/cli/test_x.py:7: only in the full run (TAAS_FULL=1)' \
      'SKIPPED [1] a.py:3: no zsh' \
      >"$builds/release/Testing/Temporary/LastTest.log"
    echo ' 3/78 Test #61: training.nccl_on_gpus ........***Skipped   0.61 sec' >"$builds/ctest.log"
    say_skipped release "$builds/ctest.log"
    conclude"""


def test_what_was_skipped_is_counted_and_has_its_reason(shell):
    done = shell("unset CI;" + REPORT)
    assert done.returncode == 0, done.stderr
    assert "skipped suites: 1, skipped test cases: 3" in done.stdout
    assert "1 no zsh (a.py:3)" in done.stdout


def test_in_ci_only_what_needs_a_gpu_may_be_skipped(shell):
    done = shell(REPORT, CI="true")
    assert done.returncode == 1
    assert "failed: skipped tests" in done.stderr
    assert shell(REPORT.replace("no zsh", "no GPU"), CI="true").returncode == 0
