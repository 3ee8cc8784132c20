"""What mixed precision in Python's DistributedDataParallel needs before it can be compared with taas'. Of torch 2.15:

- It makes a torch.Stream, and there is none without an accelerator: here the calling thread does that work in its turn.
- Until buckets are made anew after the first step, it reduces a bucket to which no gradient was copied, but whatever
  was in its memory: here they are copied.
- After several forwards before a backward that reduces (no_sync) it counts each gradient several times, and raises
  "marked as ready twice": here the hook of the forward before goes.
- So it does for a param_dtype that the parameters have already: here the reducer's own hook is alone.
- It makes integer buffers floating point ones: here they stay, as its documentation says.
"""

import contextlib

import torch
from torch.distributed.algorithms.ddp_comm_hooks import mixed_precision_hooks
from torch.nn.parallel import distributed

Wrapper = distributed.DistributedDataParallel


class CallingThread(contextlib.nullcontext):
    def wait_stream(self, _):
        pass


class DoneEvent:
    def record(self):
        pass

    def wait(self, stream):
        pass


def filled(hook):
    def run(state, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        if not bucket.buffer().is_sparse:
            for parameter, place in zip(bucket.parameters(), bucket.gradients(), strict=True):
                place.copy_(parameter.grad)
        return hook(state, bucket)

    return run


def once(wait_for_copy):
    def run(self, module, *arguments, **named):
        for parameter in module.parameters(recurse=False):
            if hasattr(parameter, "_ddp_mp_hook_state"):
                parameter._ddp_mp_hook_state[1].remove()
        wait_for_copy(self, module, *arguments, **named)

    return run


def where_type_changes(fire):
    def run(self, index, *arguments):
        if self.mixed_precision.param_dtype != torch.float32:
            fire(self, index, *arguments)

    return run


def of_floats(cast_buffers):
    def run(settings, module):
        integers = [(buffer, buffer.clone()) for buffer in module.buffers() if not buffer.is_floating_point()]
        cast_buffers(settings, module)
        for buffer, before in integers:
            buffer.data = before

    return run


def mend_mixed_precision():
    torch.Stream, torch.Event = CallingThread, DoneEvent
    torch.accelerator.current_stream = CallingThread
    mixed_precision_hooks._reducer_allreduce_and_upcast_hook = filled(
        mixed_precision_hooks._reducer_allreduce_and_upcast_hook
    )
    Wrapper._module_wait_for_copy_hook = once(Wrapper._module_wait_for_copy_hook)
    Wrapper._fire_reducer_autograd_hook = where_type_changes(Wrapper._fire_reducer_autograd_hook)
    distributed._cast_buffers = of_floats(distributed._cast_buffers)
