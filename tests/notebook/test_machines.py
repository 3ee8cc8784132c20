"""A cell whose ranks are on other machines: here two agents that something in place of ssh starts on this one."""

SSH = '''#!/bin/sh
while [ "$1" != -- ]; do shift; done
exec sh -c "$3"
'''


def test_a_cell_over_two_machines(kernel, project, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o700)
    kernel.run("import torch, os\nweights = torch.ones(2000)\ndef scaled(n):\n    return weights * n").check()
    done = kernel.run(f'''%%taas --nnodes 2 --nproc-per-node 1 --hosts one,two --interface lo --ssh {ssh} --pull total
total = scaled(2).sum()
print("node", os.environ["NODE_RANK"])
display({{"text/plain": "in place"}}, raw=True)
print("after")
''').check()
    assert done.stream() == "node 0\nafter\n"
    assert "2 ranks on 2 nodes" in done.stream("stderr")
    assert "in place" in [output["data"]["text/plain"] for output in done.of("display_data")]
    assert kernel.run("total.item()").check().result == "4000.0"
    assert not any((project / "taas-runs" / "cells").iterdir()), "the cell's files go with the cell"
