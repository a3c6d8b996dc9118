"""The part of the shared runtime for kernels that write over what they are given."""

from __future__ import annotations

WRITERS = '''\
# Kernels that write over what they are given
def _lie_apart(written: int, *tensors: torch.Tensor) -> bool:
    """Whether none of the first tensors, which are written to, has any memory of another one. A compiler that follows
    the test does not know where they lie."""
    if _compiling():
        return False
    spans = []
    if any([tensor.is_inference() for tensor in tensors[:written]]) and not torch.is_inference_mode_enabled():
        return False  # which must not be written to here
    for tensor in tensors:
        first = _address(tensor)
        last = sum([(size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())])
        spans.append((first, first + (last + 1) * tensor.itemsize if tensor.numel() else first))
    for at in range(written):
        first, end = spans[at]
        if any([first < other_end and other < end for other, other_end in spans[at + 1 :]]):
            return False
    return True


def _count_write(tensor: torch.Tensor) -> None:
    """A kernel has written to the tensor: as after PyTorch's own writes, what autograd has kept of it is not used."""
    if not tensor.is_inference():  # which keeps no count
        torch.autograd.graph.increment_version(tensor)


def _writer(launch: str) -> Callable[..., Any]:
    """What regions call that writes over what it is given: the function `launch`, once a call. Nothing that traces gets
    here: the test of such a region says no to it."""
    code = _codes[launch] = _names[launch].__code__
    for used in code.co_names:
        if _TRITON and isinstance(_names.get(used), triton.JITFunction):
            _names[used] = _Kernel(_names[used])

    def run(*tensors: torch.Tensor) -> Any:
        at = _place_of(tensors[0])
        if at < 0 or at == _current_device():
            return _names[launch](*tensors)
        with torch.cuda.device_of(tensors[0]):
            return _names[launch](*tensors)

    return run
'''
