"""What the peers share."""
import torch


def timed(call, repeat=5):
    """Milliseconds of a call on the card, of several queued together."""
    call()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeat):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeat
