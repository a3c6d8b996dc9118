"""Small programs are tested with one thread, large ones with as many as there were."""

from __future__ import annotations

import pytest
import torch
from mugraph.verification.threads import threads_for

from tests.engine.codegen import graphs
from tests.trust.text_pool import program_of


@pytest.mark.parametrize(("size", "is_small"), [(16, True), (4096, False)])
def test_one_thread_for_small_programs(size: int, is_small: bool) -> None:
    program = program_of(graphs.attention(2, size, size, 16))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(program):
            assert torch.get_num_threads() == (1 if is_small else 2)
        assert torch.get_num_threads() == 2
        with pytest.raises(ValueError, match="failed"), threads_for(program):
            raise ValueError("failed")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
