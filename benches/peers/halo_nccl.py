"""What NCCL takes for faces that go to both neighbours at once, on all the GPUs of this machine: `python3 halo_nccl.py`.

The peer of the exchange in `umklapp bench scale --full --backend cuda --ranks N` (BENCHMARKS.md, "Two GPUs").
"""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

# Bytes of a face of a box, where two boxes share a lattice: those of the cases of `umklapp bench scale` and `bench wilson`.
FACES = {
    "cubic 256^3, R = 1": 8 * 256**2,
    "Wilson 32^3x64, half-spinors": 16 * 6 * 32**3,
    "cubic 256^3, R = 8; 128^3, R = 32": 64 * 256**2,
    "insulator 200x100x40 across x, R = 32": 512 * 4 * 100 * 40,
    "cubic 256^3, R = 32; 512^3, R = 8": 256 * 256**2,
    "insulator 200x100x40 across z, R = 32": 512 * 4 * 200 * 100,
    "cubic 512^3, R = 32": 256 * 512**2,
    "128 MiB": 128 << 20,
}


def rank(number, count):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", rank=number, world_size=count, device_id=torch.device("cuda", number))
    before, after = (number - 1) % count, (number + 1) % count
    for name, size in FACES.items():
        send = [torch.ones(size // 8, dtype=torch.float64, device="cuda") for _ in range(2)]
        receive = [torch.empty_like(face) for face in send]

        def exchange():
            batch = [
                dist.P2POp(dist.isend, send[0], before),
                dist.P2POp(dist.irecv, receive[1], after),
                dist.P2POp(dist.isend, send[1], after),
                dist.P2POp(dist.irecv, receive[0], before),
            ]
            # Two ranks are each other's neighbours on both sides: as many bytes, on one link.
            for work in dist.batch_isend_irecv(batch):
                work.wait()

        for _ in range(5):
            exchange()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        best = float("inf")
        for _ in range(5):
            start.record()
            for _ in range(20):
                exchange()
            end.record()
            torch.cuda.synchronize()
            best = min(best, start.elapsed_time(end) / 20)
        if number == 0:
            rate = 2 * size / best / 1e6
            text = f"{size / 1e6:.1f} MB to each side: {best * 1e3:.0f} us, {rate:.0f} GB/s out of a card"
            print(f"{count} GPUs, {name}, {text}")
    dist.destroy_process_group()


if __name__ == "__main__":
    for count in sorted({2, torch.cuda.device_count()}):
        if count <= torch.cuda.device_count():
            mp.spawn(rank, args=(count,), nprocs=count)
