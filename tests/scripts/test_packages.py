"""What the scripts install of the distribution, when it is their turn."""

import pytest

APT = """#!/bin/sh
echo "$@" >>"$HERE/calls"
echo "E: $ERROR" >&2
[ "$(wc -l <"$HERE/calls")" -ge "$TURN" ]
"""
LOCK = "Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (unattended-upgr)"


@pytest.fixture
def apt(shell, tmp_path):
    """apt(error, turn): what install_test_packages made of an apt-get that succeeds at that call, and all calls."""
    programs = {
        "apt-get": APT,
        "sudo": '#!/bin/sh\n[ "$1" = -v ] || exec "$@"\n',
        "sleep": "#!/bin/sh\n",
        "dpkg-query": "#!/bin/sh\n",
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(error: str, turn: int):
        done = shell(
            "apt install -y zsh", PATH=f"{tmp_path}/bin:/usr/bin:/bin", HERE=str(tmp_path), ERROR=error, TURN=str(turn)
        )
        return done, (tmp_path / "calls").read_text().splitlines()

    return run


def test_apt_waits_while_the_machine_upgrades_itself(apt):
    done, calls = apt(LOCK, 4)
    assert done.returncode == 0 and len(calls) == 4
    assert all("DPkg::Lock::Timeout=" in call and call.endswith("install -y zsh") for call in calls)


def test_apt_does_not_wait_for_ever(apt):
    done, calls = apt(LOCK, 10**6)
    assert done.returncode == 1 and 200 < len(calls) < 400
    assert "unattended-upgr" in done.stderr


def test_what_apt_cannot_do_is_not_tried_again(apt):
    done, calls = apt("Unable to locate package zsh", 2)
    assert done.returncode == 1 and len(calls) == 1
    assert "Unable to locate package" in done.stderr
